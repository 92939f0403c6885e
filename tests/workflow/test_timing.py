"""Timing and calibration through the workflow: a kernel timed on the tiny experiment."""

import json
import os
import re
import shutil
import signal
import time

import pyarrow.parquet as pq
import pytest
import yaml

from tests.workflow.conftest import TIMING
from tests.workflow.harness import Workspace

pytest.importorskip("torch", reason="the kernels are torch's")


def test_measured_and_calibrated_rows_stand_beside_the_simulated_ones(timed):
    results = timed.folder / "results" / "tiny"
    metrics = pq.read_table(results / "tables" / "metrics.parquet").to_pandas()
    measured = metrics[metrics["source"] == "measured:torch_cpu"]
    assert set(measured["cp_size"]) == {1, 2} and set(measured["steps"]) == {2}
    assert set(measured["cost"]) == {"time"}
    simulated = metrics[metrics["cost"] == "calibrated:torch_cpu"]
    assert set(simulated["cp_size"]) == {1, 2, 8}
    calibration = pq.read_table(results / "tables" / "calibration.parquet").to_pandas()
    assert calibration["packs"].tolist() == [16, 8]
    headline = (results / "tables" / "headline.txt").read_text()
    assert "torch_cpu: measured on this machine, 2 steps" in headline
    for figure in ("calibration_fit", "calibration_imbalance"):
        assert (results / "figures" / f"{figure}.pdf").is_file()


def test_shards_of_a_timing_run_are_one_file_in_the_end(timed):
    path = timed.folder / "results/tiny/timings/torch_cpu/full/exponential.parquet"
    file = pq.ParquetFile(path)
    assert file.num_row_groups == 2
    provenance = json.loads(file.schema_arrow.metadata[b"cpbalance.provenance"])
    assert [run["steps"] for run in provenance["runs"]] == [[0, 1], [1, 2]]
    assert not list(path.parent.rglob("*.partial*"))


def test_what_was_measured_is_never_taken_from_a_cache(timed):
    """The cache goes by how a file was made, and two machines measure differently."""
    done = timed.snakemake("--dry-run", config="timed.yaml")
    said = done.stdout + done.stderr
    cached = set(re.findall(r"rule (\w+) is eligible for caching", said))
    assert "simulate_costs" in cached
    assert not {n for n in cached if "calibrate" in n or "time" in n or "aggregate" in n}


def test_nothing_is_left_to_do(timed):
    assert timed.jobs(config="timed.yaml") == {}


def test_an_edited_runner_times_again_and_an_edited_fit_only_calibrates_again(timed, tmp_path):
    copy = Workspace.at(shutil.copytree(timed.folder, tmp_path / "copy", symlinks=True))
    copy.edit("workflow/cpbalance/calibration.py", "FOLDS = 10", "FOLDS = 9")
    jobs = copy.jobs(config="timed.yaml")
    assert jobs["calibrate_kernels"] == 1
    assert "time_kernels" not in jobs and "pack_batches" not in jobs
    copy.edit("workflow/cpbalance/timing/runner.py", "WARMUP_WINDOW = 5", "WARMUP_WINDOW = 6")
    jobs = copy.jobs(config="timed.yaml")
    assert jobs["time_kernels"] == 2 and "pack_batches" not in jobs


def test_a_workflow_killed_while_timing_keeps_what_was_measured(tmp_path):
    """SIGKILL to Snakemake and its jobs; the same command goes on with the samples on disk."""
    workspace = Workspace(tmp_path / "killed")
    config = yaml.safe_load((workspace.folder / "tiny.yaml").read_text())
    run = TIMING["torch_cpu"] | {"passes": 60, "width": 1e-9, "calibrate": False}
    config |= {"timing": {"torch_cpu": run}}
    (workspace.folder / "killed.yaml").write_text(yaml.safe_dump(config))
    command = ["scripts/run.sh", "--configfile", "killed.yaml", "--cores", "2", "timings"]
    process = workspace.start(*command)
    timings = workspace.folder / "results/tiny/timings/torch_cpu/full/exponential.parquet"
    journal = timings.with_name(f"{timings.name}.partial.jsonl")
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        if journal.is_file() and journal.read_text().count("\n") > 100:
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = [json.loads(line)["seconds"] for line in journal.read_text().splitlines()[1:-1]]
    assert not timings.exists()
    workspace.run(*command)
    seconds = set(pq.read_table(timings)["seconds"].to_pylist())
    assert len(kept) >= 99 and seconds.issuperset(kept)
    assert not journal.exists()
