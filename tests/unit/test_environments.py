"""Pinned environments: complete, in agreement with each other, and to be had from the index."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ENVS = Path(__file__).parents[2] / "envs"
# Published as source alone, which pip does not take for another platform: a wheel is made first.
SOURCE_ONLY = ("connection-pool",)
PIP = "pip==26.3"  # from 25.2 on a dry run reads metadata alone; torch and CUDA are 3 GB
GLIBC = 28  # of the oldest distribution that H100 clusters run
PYTHONS = ("3.11", "3.12")
LIMIT_S = 280


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_of(lines: list[str]) -> dict[str, str]:
    """Name to version; every line but comments has to be an exact pin."""
    words = [line.partition("#")[0].strip() for line in lines]
    pairs = [word.split("==") for word in words if word and not word.startswith("-r")]
    assert all(len(pair) == 2 for pair in pairs), [pair for pair in pairs if len(pair) != 2]
    assert all(name == canonical(name) for name, _ in pairs)
    assert len(dict(pairs)) == len(pairs), "a package is pinned twice"
    return dict(pairs)


CPU = pins_of((ENVS / "cpu.txt").read_text().splitlines())
H100 = CPU | pins_of((ENVS / "h100.txt").read_text().splitlines())


def yaml_pins(name: str) -> dict[str, str]:
    parts = yaml.safe_load((ENVS / name).read_text())["dependencies"]
    return pins_of(next(part["pip"] for part in parts if isinstance(part, dict)))


def pip(folder: Path, *argv: str) -> subprocess.CompletedProcess:
    """A current pip under the index's own settings alone: no local wheels, no caps."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PIP_") or k == "PIP_CERT"}
    return subprocess.run(
        [sys.executable, "-m", "pip", *argv],
        env=env | {"PIP_CONFIG_FILE": os.devnull, "PYTHONPATH": str(folder / "pip")},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=folder,
    )


def resolve(folder: Path, python: str, requirements: Path) -> dict[str, dict]:
    """Metadata by name of all that would be installed on Linux x86-64; downloads metadata alone."""
    report = folder / f"{python}.json"
    platforms = [f"--platform=manylinux_2_{minor}_x86_64" for minor in range(GLIBC, 4, -1)]
    platforms += [f"--platform=manylinux{old}_x86_64" for old in ("2014", "2010", "1")]
    done = pip(
        folder,
        *("install", "--quiet", "--dry-run", "--ignore-installed", "--only-binary=:all:"),
        *(f"--report={report}", f"--python-version={python}", "--implementation=cp", *platforms),
        *("--find-links=wheels", f"--target={folder / 'nowhere'}", f"-r{requirements}"),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())["install"]
    return {canonical(item["metadata"]["name"]): item["metadata"] for item in found}


@pytest.fixture(scope="module")
def resolved(tmp_path_factory) -> dict[str, dict[str, dict]]:
    """Metadata of all of h100.txt, which takes in cpu.txt, by Python version."""
    folder = tmp_path_factory.mktemp("resolve")
    got = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--target", folder / "pip", PIP],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    if got.returncode:
        pytest.skip(f"no package index here: {got.stderr.strip().splitlines()[-1]}")
    for name in SOURCE_ONLY:
        built = pip(folder, "wheel", "-q", "--no-deps", "-w", "wheels", f"{name}=={CPU[name]}")
        assert built.returncode == 0, built.stderr
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda python: resolve(folder, python, ENVS / "h100.txt"), PYTHONS)
        return dict(zip(PYTHONS, found, strict=True))


@pytest.mark.parametrize("python", PYTHONS)
def test_pins_resolve_to_themselves(resolved, python):
    assert {name: data["version"] for name, data in resolved[python].items()} == H100


def test_torch_comes_with_cuda_13_and_the_kernel_takes_it(resolved):
    torch = [Requirement(line) for line in resolved["3.12"]["torch"]["requires_dist"]]
    toolkit = next(part for part in torch if part.name == "cuda-toolkit")
    assert toolkit.specifier.contains(H100["cuda-toolkit"])
    assert H100["cuda-toolkit"].startswith("13.")
    kernel = [Requirement(line) for line in resolved["3.12"]["fa3-fwd"]["requires_dist"]]
    need = next(part for part in kernel if part.name == "torch")
    assert need.specifier.contains(H100["torch"])


@pytest.mark.parametrize("name", ["cpu.yaml", "h100.yaml"])
def test_a_conda_environment_pins_all_that_it_installs(resolved, name):
    pins = yaml_pins(name)
    assert pins.items() <= H100.items()
    linux = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}
    for package in pins:
        for line in resolved["3.12"][package].get("requires_dist", []):
            need = Requirement(line)
            marker = {"extra": "", "python_version": "3.12", "python_full_version": "3.12.0"}
            if need.marker is None or need.marker.evaluate(linux | marker):
                assert canonical(need.name) in pins, f"{package} needs {need.name}"


def test_environments_hold_what_their_stages_import():
    assert {"torch", "fa3-fwd", "numpy", "pyarrow"} <= yaml_pins("h100.yaml").keys()
    assert {"pandas", "pydantic", "scipy", "seaborn", "pyarrow"} <= yaml_pins("cpu.yaml").keys()
    assert {"snakemake", "snakemake-executor-plugin-slurm"} <= CPU.keys()


@pytest.mark.parametrize(("version", "cuda"), [("2.13.0+cpu", "None"), ("2.13.0", "'13.0'")])
def test_make_slurm_refuses_a_torch_without_cuda(tmp_path, version, cuda):
    """`make`'s own recipe, on an environment whose pip installs nothing."""
    (tmp_path / "bin").mkdir()
    (tmp_path / ".cpu").touch()
    for name, program in (("pip", "/bin/true"), ("python", sys.executable)):
        (tmp_path / "bin" / name).symlink_to(program)
    (tmp_path / "torch.py").write_text(f"class version: cuda = {cuda}\n__version__ = {version!r}\n")
    done = subprocess.run(
        ["make", f"VENV={tmp_path}", f"{tmp_path}/.h100"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        cwd=ENVS.parent,
    )
    refused = cuda == "None"
    assert (done.returncode != 0) == refused == (not (tmp_path / ".h100").exists())
    said = [line for line in done.stderr.splitlines() if "is a build without CUDA" in line]
    assert len(said) == refused
    if refused:
        assert said[0].startswith("make: torch 2.13.0+cpu in ") and "make again" in said[0]
