"""Settings that a site cannot serve are refused at once, with words that help."""

import os
import sys
from pathlib import Path

import pytest

from tests.slurm.workspace import SlurmWorkspace

SLURM = {"sbatch", "squeue", "scancel", "sinfo", "scontrol", "srun", "sacct", "sacctmgr"}


@pytest.mark.parametrize(
    "name", ["partition_is_unknown", "gpu_type_is_unknown", "gpu_is_not_the_expected_one"]
)
def test_what_the_site_or_the_node_cannot_give_is_named(name, outcomes):
    outcomes(name)


def test_a_site_without_accounting_works_and_a_profile_that_needs_it_is_named(outcomes):
    outcomes("no_accounting")


@pytest.fixture
def no_slurm(tmp_path) -> dict[str, str]:
    """PATH of a machine that has everything but SLURM's commands."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for place in ("/usr/bin", "/bin"):
        for program in Path(place).iterdir():
            link = folder / program.name
            if program.name not in SLURM and not link.is_symlink():
                link.symlink_to(program)
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{folder}"}


def test_without_slurm_the_check_says_so_in_one_line(tmp_path, no_slurm):
    workspace = SlurmWorkspace(tmp_path / "clone")
    check = (sys.executable, "-m", "cpbalance", "slurm", "check", "--profile", "slurm-h100")
    done = workspace.run("env", f"PATH={no_slurm['PATH']}", *check, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "no SLURM on this machine" in line and "login node" in line


def test_without_slurm_the_profile_refuses_to_start(tmp_path, no_slurm):
    workspace = SlurmWorkspace(tmp_path / "clone")
    run = ("snakemake", "lengths", "--profile", "slurm-h100", "--configfile", "small.yaml")
    done = workspace.run("env", f"PATH={no_slurm['PATH']}", *run, check=False)
    assert done.returncode == 1
    assert "no SLURM on this machine (sbatch not found)" in done.stderr
    assert "Error in group" not in done.stderr  # no job was tried
