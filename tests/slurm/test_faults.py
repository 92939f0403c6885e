"""Every fault of a cluster, one at a time, in the timing job of our own workflow.

After each, one command finishes the work; what was finished is not made again; what is measured
is not measured twice; and the result is that of a clean run. The stories are in scenarios.py.
"""

from pathlib import Path

import numpy as np
import pytest

from cpbalance.stage_schemas import TIMINGS
from cpbalance.tables import read_provenance, read_table
from tests.slurm.workspace import PARTIAL, TIMING

FAULTS = (
    "nothing",
    "node_crashes",
    "time_limit_passes",
    "preempted",
    "requeued",
    "exit_status_7_always",
    "exit_status_7_once",
    "memory_runs_out",
    "cancelled_by_an_operator",
    "login_node_is_lost",
    "snakemake_is_interrupted",
    "snakemake_is_terminated",
    "disk_is_full",
    "controllers_go_away",
)


@pytest.mark.parametrize("name", FAULTS)
def test_the_work_is_finished_whatever_happens(name, outcomes, prepared):
    workspace, clean = outcomes(name), outcomes("nothing")
    # Documents and packs were there before and are not made again.
    assert not workspace.jobs("prepare")
    before = prepared.digests("lengths", "packs")
    assert len(before) == 6
    assert workspace.digests("lengths", "packs") == before
    _assert_whole(workspace.folder / TIMING, clean.folder / TIMING)
    assert not list(workspace.folder.glob("results/**/*.partial*"))


def _assert_whole(path: Path, clean: Path) -> None:
    """The same packs timed with the same settings as in a clean run; the times are their own."""
    table, expected = read_table(path, TIMINGS), read_table(clean, TIMINGS)
    columns = ["step", "cp_size", "pack", "direction", "num_tokens", "num_segments", "q_heads"]
    assert _packs(table, columns) == _packs(expected, columns)
    assert np.all(table["seconds"].to_numpy() > 0)
    found, wanted = read_provenance(path, TIMINGS), read_provenance(clean, TIMINGS)
    (run,), (clean_run,) = found.pop("runs"), wanted.pop("runs")
    assert found["kernel"]["name"] == "torch_cpu"
    for provenance in (found, wanted):  # some stories need more time than others
        assert provenance["method"].pop("budget_s") > 0
    assert found == wanted
    assert run["packs_digest"] == clean_run["packs_digest"]
    assert run["calls"] == table.num_rows >= PARTIAL


def _packs(table, columns) -> set[tuple]:
    rows = table.select([*columns, "kind"]).to_pylist()
    return {tuple(row[c] for c in columns) for row in rows if row["kind"] == "pack"}
