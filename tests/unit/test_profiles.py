"""The profiles: what they would submit, for every way in which a site wants to be asked."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from snakemake.profiles import ProfileConfigFileParser

REPOSITORY = Path(__file__).resolve().parents[2]
PROFILES = REPOSITORY / "profiles"


def read_profile(name: str, site: Path | None = None) -> dict:
    """Settings as Snakemake reads them; ``site`` instead of profiles/site.yaml."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CPBALANCE_SITE", str(site or PROFILES / "site.yaml"))
        with (PROFILES / name / "config.v9+.yaml").open() as stream:
            return dict(ProfileConfigFileParser().parse(stream))


def pairs(entries: list[str]) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in entries)


def dry_run(*arguments: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    library = str(REPOSITORY / "workflow")
    done = subprocess.run(
        ["snakemake", "--dry-run", *arguments],
        cwd=REPOSITORY,
        env=os.environ | {"PATH": path, "PYTHONPATH": library},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def submitted(listing: str) -> dict[str, int]:
    """Jobs by group or rule, from what a dry run lists; targets, which run here, left out."""
    found: dict[str, int] = {}
    for name in re.findall(r"(?:^rule|^.*Group job) (\w+)(?::| \()", listing, re.M):
        found[name] = found.get(name, 0) + 1
    return found


@pytest.fixture(scope="module")
def h100(tmp_path_factory) -> dict[str, int]:
    folder = tmp_path_factory.mktemp("h100")
    targets = ("all", "artifact", "paper")
    listing = dry_run("--profile", "slurm-h100", "--directory", str(folder), *targets)
    return {name: count for name, count in submitted(listing).items() if name not in targets}


def test_the_h100_experiment_is_eleven_jobs(h100):
    """Two families prepared, each timed for two layers in two shards, one job for the rest."""
    assert h100 == {"prepare": 2, "time_kernels": 8, "finish": 1}


def test_the_link_at_the_root_is_the_profile():
    assert (REPOSITORY / "slurm-h100").resolve() == PROFILES / "slurm-h100"


def test_profiles_agree_on_all_but_the_gpu():
    h100, cpu = read_profile("slurm-h100"), read_profile("slurm-cpu")
    assert {k: v for k, v in h100.items() if k not in ("configfile", "set-resources")} == cpu


def test_gpus_are_asked_for_by_the_timing_rule_alone():
    profile = read_profile("slurm-h100")
    assert not any("gpu" in entry or "gres" in entry for entry in profile["default-resources"])
    assert {entry.partition(":")[0] for entry in profile["set-resources"]} == {"time_kernels"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"gres": "gpu:h100:1", "slurm_partition": "gpu"}),
        ({"gpu_type": ""}, {"gres": "gpu:1"}),
        ({"gpu_exclusive": True}, {"gres": "gpu:h100:1", "slurm_extra": "--exclusive"}),
        ({"gpu_request": "gpus"}, {"gpu": "1", "gpu_model": "h100"}),
        ({"gpu_request": "gpus", "gpu_type": ""}, {"gpu": "1"}),
        ({"gpu_request": "gpus-per-node"}, {"slurm_extra": "--gpus-per-node=h100:1"}),
        (
            {"gpu_request": "gpus-per-node", "gpu_type": "", "gpu_exclusive": True},
            {"slurm_extra": "--exclusive --gpus-per-node=1"},
        ),
        ({"constraint": "hbm3"}, {"gres": "gpu:h100:1", "constraint": "hbm3"}),
        ({"gpu_mem_mb": 64000, "gpu_minutes": 30}, {"mem_mb": "attempt * 64000"}),
        ({"gpu_minutes": 30}, {"runtime": "attempt * 30"}),
    ],
)
def test_site_settings_become_resources(tmp_path, changes, expected):
    site = tmp_path / "site.yaml"
    default = yaml.safe_load((PROFILES / "site.yaml").read_text())
    site.write_text(yaml.safe_dump(default | changes))
    profile = read_profile("slurm-h100", site)
    found = pairs([entry.removeprefix("time_kernels:") for entry in profile["set-resources"]])
    assert expected.items() <= found.items()
    ways = {"gres", "gpu", "gpu_model", "slurm_extra"}
    assert found.keys() & ways == expected.keys() & ways or not expected.keys() & ways


def test_account_and_qos_reach_every_job(tmp_path):
    site = tmp_path / "site.yaml"
    default = yaml.safe_load((PROFILES / "site.yaml").read_text())
    site.write_text(yaml.safe_dump(default | {"account": "mine", "qos": "short"}))
    for name in ("slurm-h100", "slurm-cpu"):
        found = pairs(read_profile(name, site)["default-resources"])
        assert (found["slurm_account"], found["qos"]) == ("mine", "short")
        assert not {"slurm_account", "qos"} & pairs(read_profile(name)["default-resources"]).keys()


@pytest.mark.parametrize("example", sorted((PROFILES / "examples").glob("*.yaml")))
def test_an_example_has_every_setting_and_no_other(example):
    default = yaml.safe_load((PROFILES / "site.yaml").read_text())
    assert yaml.safe_load(example.read_text()).keys() == default.keys()
    read_profile("slurm-h100", example)
