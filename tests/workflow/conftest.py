"""One finished run of the tiny experiment, shared by all tests that only read it or copy it."""

import shutil

import pytest
import yaml

from tests.workflow.harness import Workspace

TIMING = {
    "torch_cpu": {
        "lengths": ["exponential"],
        "attention": ["full"],
        "cp_sizes": [1, 2],
        "dtype": "float32",
        "steps": 2,
        "passes": 6,
        "budget_s": 30,
    }
}


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Workspace:
    """A workspace after `snakemake`; do not change it: take a copy with ``clone``."""
    workspace = Workspace(tmp_path_factory.mktemp("finished") / "clone")
    workspace.snakemake()
    return workspace


@pytest.fixture
def clone(finished, tmp_path):
    """Copy of the finished run, with Snakemake's notes unless ``notes=False``."""

    def copy(notes: bool = True) -> Workspace:
        folder = tmp_path / "copy"
        leave_out = () if notes else (".snakemake",)
        shutil.copytree(
            finished.folder, folder, symlinks=True, ignore=shutil.ignore_patterns(*leave_out)
        )
        return Workspace.at(folder)

    return copy


@pytest.fixture(scope="session")
def timed(tmp_path_factory):
    """The tiny experiment with a kernel timed in two shards and a calibrated cost, finished."""
    pytest.importorskip("torch", reason="the kernels are torch's")
    workspace = Workspace(tmp_path_factory.mktemp("timed") / "clone")
    config = yaml.safe_load((workspace.folder / "tiny.yaml").read_text())
    config |= {"timing": TIMING, "costs": ["quadratic", "calibrated:torch_cpu"]}
    config |= {"shards": {"time": 2}}
    (workspace.folder / "timed.yaml").write_text(yaml.safe_dump(config))
    workspace.snakemake(config="timed.yaml")
    return workspace
