"""What happens to a workflow on a cluster: one function a story, run side by side.

Each gets a workspace whose documents are packed and the cluster. Those of PARALLEL mostly wait, so
they run at once; those of ALONE touch the whole cluster and run when no other does.
"""

import signal
import time
from collections.abc import Callable

from tests.slurm.cluster import Cluster
from tests.slurm.machine import Disk, call, wait_for
from tests.slurm.workspace import TIMING, SlurmWorkspace

Scenario = Callable[[SlurmWorkspace, Cluster], None]
PARALLEL: dict[str, Scenario] = {}
ALONE: dict[str, Scenario] = {}
FEATURES: dict[str, str] = {}
OTHER_TIMING = TIMING.replace("exponential", "normal")


def scenario(feature: str = "steady", group: dict[str, Scenario] = PARALLEL):
    """Enter a story; its jobs go to nodes with ``feature``."""

    def note(function: Scenario) -> Scenario:
        group[function.__name__], FEATURES[function.__name__] = function, feature
        return function

    return note


def states(workspace: SlurmWorkspace, rule: str = "time_kernels") -> list[str]:
    """How the jobs of a rule ended, in order of submission."""
    return [job.state for job in workspace.jobs(rule)]


def resumed(workspace: SlurmWorkspace) -> bool:
    """Whether the last timing job went on from partial results."""
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
    workspace.set_timing(budget_s=10)  # it has to last until it is preempted
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
    workspace.set_timing(lengths=["exponential", "normal"])
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
    workspace.set_timing(budget_s=15)  # it has to outlive the second Snakemake below
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
    with Disk(results, "16m"):
        filler = results / "filler"
        run = workspace.submit(TIMING, "--retries", "0")
        workspace.running()
        call("dd", "if=/dev/zero", f"of={filler}", "bs=4k")  # until nothing is left
        assert run.wait() == 1
        assert "cpbalance time: error: No space left on device" in run.output
        assert "Traceback" not in workspace.timing_log()
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


@scenario()
def whole_experiment(workspace, cluster):
    workspace.forget()
    run = workspace.submit("--verbose", limit=600).check()
    calls = [line for line in run.output.splitlines() if line.startswith("sbatch call: ")]
    (workspace.folder / "sbatch.txt").write_text("\n".join(calls))


@scenario()
def whole_experiment_without_slurm(workspace, cluster):
    workspace.forget()
    workspace.snakemake("--cores", "1", config="small.yaml")


@scenario()
def timed_in_two_shards(workspace, cluster):
    workspace.set_config(shards={"time": 2})
    workspace.submit(TIMING).check()


@scenario()
def gpus_are_counted(workspace, cluster):
    workspace.set_site(gpu_request="gpus", gpu_exclusive=True)
    workspace.set_timing(budget_s=0.1)
    workspace.submit(TIMING).check()


@scenario()
def gpus_are_counted_per_node(workspace, cluster):
    workspace.set_site(gpu_request="gpus-per-node")
    workspace.set_timing(budget_s=0.1)
    workspace.submit(TIMING).check()


@scenario()
def partition_is_unknown(workspace, cluster):
    workspace.run("cpbalance", "slurm", "check", "--profile", "slurm-h100")
    workspace.set_site(gpu_partition="nope")
    run = workspace.submit(TIMING)
    assert run.wait() == 1
    assert "invalid partition specified: nope" in run.output
    check = workspace.run("cpbalance", "slurm", "check", "--profile", "slurm-h100", check=False)
    assert check.returncode == 2
    assert "partition is 'nope'; this site has cpu, gpu, urgent" in check.stderr


@scenario()
def gpu_type_is_unknown(workspace, cluster):
    workspace.set_site(gpu_type="a100")
    run = workspace.submit(TIMING)
    assert run.wait() == 1
    assert "Requested node configuration is not available" in run.output
    check = workspace.run("cpbalance", "slurm", "check", "--profile", "slurm-h100", check=False)
    assert check.returncode == 2
    assert "GPU type is 'a100'; partition gpu has h100" in check.stderr


@scenario()
def gpu_is_not_the_expected_one(workspace, cluster):
    workspace.set_timing(expected_device="H100", strict_device=True)
    run = workspace.submit(TIMING, "--retries", "0")
    assert run.wait() == 1
    # Said in the job, shown by the Snakemake that submitted it, in one line.
    complaints = {line for line in run.output.splitlines() if "but H100 is expected" in line}
    assert any(line.startswith("cpbalance time: error: device is ") for line in complaints)
    assert "Traceback" not in run.output
    assert workspace.partial_results() == 0


@scenario(group=ALONE)
def controllers_go_away(workspace, cluster):
    workspace.set_timing(budget_s=16)
    run = workspace.submit(TIMING)
    job = workspace.running()
    for name, seconds in (("slurmctld", 5), ("slurmdbd", 3), (job.nodes, 1)):
        cluster.stop(name)
        time.sleep(seconds)
        cluster.start(name)
    run.check()
    assert states(workspace) == ["COMPLETED"]
    assert not resumed(workspace)
    cluster.wait_until_ready()
    workspace.again(TIMING).check()
    assert states(workspace) == ["COMPLETED"]


@scenario(group=ALONE)
def no_accounting(workspace, cluster):
    cluster.reconfigure(accounting=False)
    try:
        workspace.submit(TIMING).check()
        assert states(workspace) == ["COMPLETED"]
        profile = workspace.folder / "profiles/slurm-h100/config.v9+.yaml"
        assert "slurm-status-command: squeue" in profile.read_text()
        check = ("cpbalance", "slurm", "check", "--profile", "slurm-h100")
        assert workspace.run(*check).returncode == 0
        workspace.edit(str(profile), "status-command: squeue", "status-command: sacct")
        refused = workspace.run(*check, check=False)
        assert refused.returncode == 2
        assert "this site keeps no accounting" in refused.stderr
    finally:
        cluster.reconfigure(accounting=True)
