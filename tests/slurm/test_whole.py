"""The small experiment through the profile: what is submitted where, and what comes out."""

import shlex

import pandas as pd
import pytest
import yaml

from cpbalance.stage_schemas import TIMINGS
from cpbalance.tables import read_provenance, read_table
from tests.slurm.cluster import GPU_NODES
from tests.slurm.machine import call
from tests.slurm.workspace import TIMING, Job
from tests.workflow.harness import REPOSITORY

# Stages that measure nothing write the same bytes everywhere.
EXACT = ("lengths", "packs", "costs", "theory")


def job_as_slurm_has_it(job: Job) -> str:
    """What a job asked for; SLURM 24.11 writes gres/gpu where 22.05 writes gres:gpu."""
    return call("scontrol", "show", "job", str(job.number)).stdout.replace("gres/gpu", "gres:gpu")


@pytest.mark.story("whole_experiment")
def test_jobs_are_few_and_each_is_where_it_belongs(outcomes):
    workspace = outcomes("whole_experiment")
    jobs = workspace.jobs()
    assert [job.state for job in jobs] == ["COMPLETED"] * len(jobs)
    # Documents and packs of a family are one job; so is all that follows the timing.
    assert sorted(job.rule.partition("_")[0] for job in jobs) == [
        "finish",
        "prepare",
        "prepare",
        "time",
    ]
    for job in jobs:
        timing = job.rule == "time_kernels"
        assert job.partition == ("gpu" if timing else "cpu")
        assert (job.nodes in GPU_NODES) == timing
    (timing,) = workspace.notes("time")
    assert timing["CUDA_VISIBLE_DEVICES"].isdecimal() and timing["SLURMD_NODENAME"] in GPU_NODES
    for stage in ("sample", "pack", "simulate", "aggregate", "plot"):
        assert workspace.notes(stage)
        for note in workspace.notes(stage):
            assert note["CUDA_VISIBLE_DEVICES"] is None and note["SLURMD_NODENAME"].startswith("cn")


@pytest.mark.story("whole_experiment")
def test_jobs_ask_for_what_the_site_settings_say(outcomes):
    workspace = outcomes("whole_experiment")
    site = yaml.safe_load((workspace.folder / "profiles/site.yaml").read_text())
    (job,) = workspace.jobs("time_kernels")
    shown = job_as_slurm_has_it(job)
    for asked in (
        "TresPerNode=gres:gpu:h100:1",
        "Partition=gpu",
        f"Features={site['constraint']}",
        f"MinMemoryNode={site['gpu_mem_mb']}M",
        f"NumCPUs={site['gpu_cpus']}",
        "TimeLimit=00:05:00",
        "Requeue=1",
    ):
        assert asked in shown, shown
    # A group asks for the memory of one of its steps and for the time of all.
    for job in workspace.jobs("prepare"):
        assert job.memory == f"{site['cpu_mem_mb']}M"
        assert job.limit == f"{3 * site['cpu_minutes']}:00"


@pytest.mark.story("whole_experiment")
def test_the_gpu_job_is_submitted_as_documented(outcomes):
    workspace = outcomes("whole_experiment")
    calls = (workspace.folder / "sbatch.txt").read_text().splitlines()
    (call,) = [line for line in calls if "--comment rule_time_kernels" in line]
    documented = (REPOSITORY / "profiles/README.md").read_text()
    (line,) = [line for line in documented.splitlines() if line.startswith("sbatch --parsable")]
    site = yaml.safe_load((workspace.folder / "profiles/site.yaml").read_text())
    for default, here in (
        ("-t 60", f"-t {site['gpu_minutes']} -C {site['constraint']}"),
        ("--mem 16000", f"--mem {site['gpu_mem_mb']}"),
        ("--cpus-per-task=4", f"--cpus-per-task={site['gpu_cpus']}"),
        ("CLONE", str(workspace.folder)),
    ):
        assert line.count(default) == 1
        line = line.replace(default, here)
    words = shlex.split(call.removeprefix("sbatch call: ").partition(" --wrap=")[0])
    for name in ("--job-name", "--output", "--comment"):
        at = words.index(name)
        del words[at : at + 2]
    assert words == line.split()


@pytest.mark.story("whole_experiment")
@pytest.mark.story("whole_experiment_without_slurm")
def test_results_are_those_of_a_local_run(outcomes):
    cluster, local = outcomes("whole_experiment"), outcomes("whole_experiment_without_slurm")
    found = cluster.digests()
    assert found.keys() == local.digests().keys()
    assert cluster.digests(*EXACT) == local.digests(*EXACT)
    assert cluster.digests(*EXACT)
    tables = []
    for workspace in (cluster, local):
        table = pd.read_csv(workspace.folder / "results/small/tables/metrics.csv")
        tables.append(table[~table["source"].str.startswith("measured")].reset_index(drop=True))
    pd.testing.assert_frame_equal(*tables, check_exact=True)


@pytest.mark.story("whole_experiment")
def test_tables_say_that_the_kernel_ran_on_a_cpu(outcomes):
    table = pd.read_csv(outcomes("whole_experiment").folder / "results/small/tables/metrics.csv")
    measured = {source for source in table["source"] if source.startswith("measured")}
    assert measured == {"measured:torch_cpu"}


@pytest.mark.story("timed_in_two_shards")
@pytest.mark.story("nothing")
def test_a_timing_in_shards_is_one_job_each_and_times_the_same_packs(outcomes):
    workspace, clean = outcomes("timed_in_two_shards"), outcomes("nothing")
    jobs = workspace.jobs("time_kernels")
    assert [job.state for job in jobs] == ["COMPLETED", "COMPLETED"]
    assert all(job.nodes in GPU_NODES for job in jobs)
    columns = ["step", "cp_size", "pack", "num_tokens", "num_segments"]

    def packs(path):
        table = read_table(path, TIMINGS).to_pandas().query("kind == 'pack'")[columns]
        return table.drop_duplicates().sort_values(columns).reset_index(drop=True)

    path = workspace.folder / TIMING
    pd.testing.assert_frame_equal(packs(path), packs(clean.folder / TIMING))
    runs = read_provenance(path, TIMINGS)["runs"]
    assert [run["steps"] for run in runs] == [[0, 1], [1, 2]]


@pytest.mark.parametrize("name", ["gpus_are_counted", "gpus_are_counted_per_node"])
def test_a_gpu_is_had_however_the_site_wants_to_be_asked(name, outcomes):
    workspace = outcomes(name)
    (job,) = workspace.jobs("time_kernels")
    assert job.state == "COMPLETED" and job.nodes in GPU_NODES
    (note,) = workspace.notes("time")
    assert note["CUDA_VISIBLE_DEVICES"].isdecimal()  # one of the node's
    shown = job_as_slurm_has_it(job)
    if name == "gpus_are_counted":
        assert "TresPerJob=gres:gpu:h100:1" in shown
        assert "OverSubscribe=NO" in shown  # the whole node
    else:
        assert "TresPerNode=gres:gpu:h100:1" in shown
