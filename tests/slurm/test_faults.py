"""Every fault of a cluster, one at a time, in the timing job of our own workflow.

After each, one command finishes the work; what was finished is not made again; what is measured
twice is not wasted; and the result is that of a clean run. The scenarios of PARALLEL run side by
side, since each mostly waits; those of ALONE touch the whole cluster and run when no other does.
"""

import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cpbalance.tables import TIMINGS, read_provenance, read_table

from tests.slurm.cluster import Cluster, call, wait_for
from tests.slurm.workspace import PARTIAL, TIMING, SlurmWorkspace

Scenario = Callable[[SlurmWorkspace, Cluster], None]
PARALLEL: dict[str, Scenario] = {}
ALONE: dict[str, Scenario] = {}
FEATURES: dict[str, str] = {}
OTHER_TIMING = TIMING.replace("exponential", "normal")
# Scenarios at once; each is Snakemake, its job, and waiting.
WORKERS = 7


def scenario(feature: str = "steady", group: dict[str, Scenario] = PARALLEL):
    def note(function: Scenario) -> Scenario:
        group[function.__name__], FEATURES[function.__name__] = function, feature
        return function

    return note


def states(workspace: SlurmWorkspace, rule: str = "time_kernels") -> list[str]:
    return [job.state for job in workspace.jobs(rule)]


def resumed(workspace: SlurmWorkspace) -> bool:
    return "resuming after" in workspace.timing_log()


# The slowest first: they set the length of the whole.


@scenario("fragile")
def node_crashes(workspace, cluster):
    run = workspace.submit(TIMING)
    node = workspace.running().nodes
    cluster.crash_node(node)
    run.check()
    (job,) = workspace.jobs("time_kernels")
    assert job.state == "COMPLETED" and job.nodes != node
    assert resumed(workspace)
    cluster.start(node)


@scenario()
def time_limit_passes(workspace, cluster):
    workspace.set_site(gpu_minutes=1)
    workspace.set_fault(what="hang")
    workspace.submit(TIMING).check()
    first, second = workspace.jobs("time_kernels")
    assert (first.state, first.limit) == ("TIMEOUT", "1:00")
    assert (second.state, second.limit) == ("COMPLETED", "2:00")
    assert resumed(workspace)


@scenario("contested")
def preempted(workspace, cluster):
    run = workspace.submit(TIMING)
    node = workspace.running().nodes
    call(
        *("sbatch", "--partition=urgent", f"--nodelist={node}", "--exclusive", "--time=1"),
        *("--output=/dev/null", "--chdir=/tmp", "--wrap=sleep 3"),
    ).check_returncode()
    wait_for("preemption", lambda: states(workspace) == ["PENDING"], 60)
    run.check()
    assert states(workspace) == ["COMPLETED"]
    assert resumed(workspace)


@scenario()
def requeued(workspace, cluster):
    run = workspace.submit(TIMING)
    call("scontrol", "requeue", str(workspace.running().number)).check_returncode()
    run.check()
    assert states(workspace) == ["COMPLETED"]
    assert resumed(workspace)


@scenario()
def exit_status_7_always(workspace, cluster):
    workspace.set_config(timing={"torch_cpu": _timing(lengths=["exponential", "normal"])})
    workspace.set_fault(what="exit", times=3)
    run = workspace.submit(TIMING, OTHER_TIMING)
    assert run.wait() == 1
    assert sorted(states(workspace)) == ["COMPLETED", "FAILED", "FAILED", "FAILED"]
    assert (workspace.folder / OTHER_TIMING).exists()
    assert not (workspace.folder / TIMING).exists()
    workspace.again(TIMING, OTHER_TIMING).check()
    assert len(states(workspace)) == 5
    assert resumed(workspace)


@scenario()
def memory_runs_out(workspace, cluster):
    workspace.set_fault(what="memory")
    workspace.submit(TIMING).check()
    first, second = workspace.jobs("time_kernels")
    assert first.state in ("OUT_OF_MEMORY", "FAILED") and first.memory == "1500M"
    assert second.state == "COMPLETED" and second.memory == "3000M"
    assert resumed(workspace)


@scenario()
def exit_status_7_once(workspace, cluster):
    workspace.set_fault(what="exit")
    workspace.submit(TIMING).check()
    assert states(workspace) == ["FAILED", "COMPLETED"]
    assert resumed(workspace)


@scenario()
def cancelled_by_an_operator(workspace, cluster):
    run = workspace.submit(TIMING)
    call("scancel", str(workspace.running().number)).check_returncode()
    run.check()
    assert states(workspace) == ["CANCELLED", "COMPLETED"]
    assert resumed(workspace)


@scenario()
def login_node_is_lost(workspace, cluster):
    run = workspace.submit(TIMING)
    workspace.running()
    run.kill()
    assert states(workspace) == ["RUNNING"]
    # Alone, a second Snakemake would refuse this folder, and unlocked write beside the first job.
    assert "lock" in (second := workspace.submit(TIMING)).output or second.wait() == 1
    workspace.again(TIMING).check()
    assert states(workspace) == ["CANCELLED", "COMPLETED"]
    assert resumed(workspace)


@scenario()
def snakemake_is_interrupted(workspace, cluster):
    run = workspace.submit(TIMING)
    workspace.running()
    run.send(signal.SIGINT)
    assert run.wait() == 1
    wait_for("cancellation", lambda: states(workspace) == ["CANCELLED"], 30)
    workspace.again(TIMING).check()
    assert states(workspace) == ["CANCELLED", "COMPLETED"]
    assert resumed(workspace)


@scenario()
def snakemake_is_terminated(workspace, cluster):
    run = workspace.submit(TIMING)
    workspace.running()
    run.send(signal.SIGTERM)
    assert run.wait() == 1
    assert states(workspace) == ["COMPLETED"]
    workspace.again(TIMING).check()
    assert states(workspace) == ["COMPLETED"]


@scenario()
def disk_is_full(workspace, cluster):
    results = workspace.folder / "results"
    with Disk(results, "4m"):
        filler = results / "filler"
        free = call("stat", "-f", "--format=%a %S", str(results)).stdout.split()
        filler.write_bytes(bytes(int(free[0]) * int(free[1]) - (12 << 10)))
        run = workspace.submit(TIMING, "--retries", "0")
        assert run.wait() == 1
        assert "No space left on device" in run.output
        assert not (workspace.folder / TIMING).exists()
        filler.unlink()
        workspace.again(TIMING).check()
        assert states(workspace) == ["FAILED", "COMPLETED"]
        assert resumed(workspace)


@scenario()
def nothing(workspace, cluster):
    workspace.submit(TIMING).check()
    assert states(workspace) == ["COMPLETED"]
    assert not resumed(workspace)


@scenario(group=ALONE)
def controllers_go_away(workspace, cluster):
    workspace.set_config(timing={"torch_cpu": _timing(budget_s=25)})
    run = workspace.submit(TIMING)
    job = workspace.running()
    for name, seconds in (("slurmctld", 8), ("slurmdbd", 4), (job.nodes, 2)):
        cluster.stop(name)
        time.sleep(seconds)
        cluster.start(name)
    cluster.wait_until_ready()
    run.check()
    assert states(workspace) == ["COMPLETED"]
    assert not resumed(workspace)
    workspace.again(TIMING).check()
    assert states(workspace) == ["COMPLETED"]


def _timing(**changes):
    import yaml

    small = yaml.safe_load((Path(__file__).parent / "small.yaml").read_text())
    return small["timing"]["torch_cpu"] | changes


class Disk:
    """A file system of its own, of ``size``, that holds what the folder held."""

    def __init__(self, folder: Path, size: str) -> None:
        self._folder, self._size = folder, size

    def __enter__(self) -> None:
        kept = self._folder.with_name("kept")
        self._folder.rename(kept)
        self._folder.mkdir()
        options = f"size={self._size}"
        call("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self._folder)).check_returncode()
        call("cp", "-a", f"{kept}/.", str(self._folder)).check_returncode()

    def __exit__(self, *_: object) -> None:
        kept = self._folder.with_name("kept-after")
        call("cp", "-a", f"{self._folder}/.", str(kept))
        call("umount", "-l", str(self._folder)).check_returncode()
        self._folder.rmdir()
        if kept.exists():
            kept.rename(self._folder)


@pytest.fixture(scope="module")
def started(request, cluster, prepared, tmp_path_factory):
    """Futures of all parallel scenarios that a selected test needs, running since the first."""
    folder = tmp_path_factory.mktemp("faults")
    selected = {
        item.callspec.params["name"]
        for item in request.session.items
        if item.originalname == "test_the_work_is_finished_whatever_happens"
    }
    wanted = [name for name in PARALLEL if name in selected | {"nothing"}]
    pool = ThreadPoolExecutor(WORKERS)
    futures = {}
    for name in wanted:
        workspace = prepared.copy(folder / name, FEATURES[name])
        futures[name] = pool.submit(_outcome, PARALLEL[name], workspace, cluster)
    yield futures
    pool.shutdown(wait=True, cancel_futures=True)


def _outcome(run: Scenario, workspace: SlurmWorkspace, cluster: Cluster) -> SlurmWorkspace:
    run(workspace, cluster)
    return workspace


@pytest.mark.parametrize("name", [*PARALLEL, *ALONE])
def test_the_work_is_finished_whatever_happens(name, started, cluster, prepared, tmp_path):
    if name in ALONE:
        for future in started.values():
            future.exception()
        workspace = _outcome(ALONE[name], prepared.copy(tmp_path / name), cluster)
    else:
        workspace = started[name].result()
    # Documents and packs were there before and are not made again.
    assert not workspace.jobs("prepare")
    assert workspace.digests("lengths", "packs") == prepared.digests("lengths", "packs")
    _assert_whole(workspace.folder / TIMING, started["nothing"].result().folder / TIMING)
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
    assert found["method"].pop("budget_s") in (5, 25) and wanted["method"].pop("budget_s") == 5
    assert found == wanted
    assert run["packs_digest"] == clean_run["packs_digest"]
    assert run["calls"] == table.num_rows >= PARTIAL


def _packs(table, columns) -> set[tuple]:
    rows = table.select([*columns, "kind"]).to_pylist()
    return {tuple(row[c] for c in columns) for row in rows if row["kind"] == "pack"}
