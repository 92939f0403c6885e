"""One finished run of the tiny experiment, shared by all tests that only read it or copy it."""

import shutil

import pytest

from tests.workflow.harness import Workspace


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
