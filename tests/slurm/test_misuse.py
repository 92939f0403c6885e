"""Settings that a site cannot serve are refused at once, with words that help."""

import os
import sys

import pytest

from tests.slurm.workspace import SlurmWorkspace


@pytest.mark.parametrize(
    "name", ["partition_is_unknown", "gpu_type_is_unknown", "gpu_is_not_the_expected_one"]
)
def test_what_the_site_or_the_node_cannot_give_is_named(name, outcomes):
    outcomes(name)


def test_a_site_without_accounting_works_and_a_profile_that_needs_it_is_named(outcomes):
    outcomes("no_accounting")


def test_without_slurm_one_line_says_so(tmp_path):
    workspace = SlurmWorkspace(tmp_path / "clone")
    python = sys.executable
    nowhere = workspace.environment | {"PATH": str(tmp_path)}
    done = workspace.run(
        *("env", f"PATH={nowhere['PATH']}", python, "-m", "cpbalance"),
        *("slurm", "check", "--profile", "slurm-h100"),
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "no SLURM on this machine" in line and os.linesep not in line
