"""Timing and calibration through the workflow: a kernel timed on the tiny experiment."""

import json
import re

import pyarrow.parquet as pq
import pytest

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


def test_an_edited_runner_times_again_and_an_edited_fit_only_calibrates_again(timed):
    """Last, as it edits the workspace that the others read."""
    timed.edit("workflow/cpbalance/calibration.py", "FOLDS = 10", "FOLDS = 9")
    jobs = timed.jobs(config="timed.yaml")
    assert jobs["calibrate_kernels"] == 1
    assert "time_kernels" not in jobs and "pack_batches" not in jobs
    timed.edit("workflow/cpbalance/timing/runner.py", "WARMUP_WINDOW = 5", "WARMUP_WINDOW = 6")
    jobs = timed.jobs(config="timed.yaml")
    assert jobs["time_kernels"] == 2 and "pack_batches" not in jobs
