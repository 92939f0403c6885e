import json
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from timing_helpers import CP1, CP2, run_time, time_arguments, write_both, write_packs

from cpbalance.cli.time_journal import FileJournal
from cpbalance.stage_schemas import TIMINGS
from cpbalance.tables import read_provenance, read_table
from cpbalance.timing.device import CpuDevice

torch = pytest.importorskip("torch", reason="the kernels are torch's")


@pytest.fixture
def packs(tmp_path):
    return write_both(tmp_path)


def test_every_pack_of_every_cp_is_timed(packs, tmp_path):
    output = tmp_path / "out" / "timings.parquet"
    assert run_time(packs, output) == 0
    rows = read_table(output, TIMINGS).to_pylist()
    timed = {(r["cp_size"], r["step"], r["pack"]): r for r in rows if r["kind"] == "pack"}
    expected = {(cp, s, p): seg for cp, packs in ((1, CP1), (2, CP2)) for s, p, seg in packs}
    assert set(timed) == set(expected)
    for key, segments in expected.items():
        assert timed[key]["num_tokens"] == sum(segments)
        assert timed[key]["num_segments"] == len(segments)
        assert timed[key]["rank_q_heads"] == timed[key]["q_heads"] == 4 // key[0]
        assert timed[key]["rank_kv_heads"] == timed[key]["kv_heads"] == 2 // key[0]
    # A CPU does not tell whether it is throttled.
    assert all(r["seconds"] > 0 and r["throttled"] is None for r in rows)
    assert sorted(r["order"] for r in rows) == list(range(len(rows)))
    assert not list(output.parent.glob("*.partial*"))


def test_provenance_says_where_how_and_at_what_expense(packs, tmp_path):
    output = tmp_path / "timings.parquet"
    run_time(packs, output, timed_heads=1)
    provenance = read_provenance(output, TIMINGS)
    assert provenance["kernel"]["package"] == "torch"
    assert provenance["clock"] == "CPU seconds of one thread"
    assert provenance["timed_heads"] == 1
    assert provenance["heads"]["cp1"] == {
        "rank_q_heads": 4,
        "rank_kv_heads": 2,
        "q_heads": 1,
        "kv_heads": 1,
    }
    (run,) = provenance["runs"]
    assert run["ended"] == "all passes are made" and run["passes"] == 2
    assert 0 < run["budget_used_s"] < 20
    assert 0 < run["output_error"] < 1e-5
    assert run["drift"] > 0 and run["other_processes"] is None
    assert run["throttled"] is None and run["throttling_unknown"] == run["calls"]
    assert {"device", "host", "torch", "python", "threads"} <= set(run["environment"])


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_directions(packs, tmp_path, direction):
    output = tmp_path / "timings.parquet"
    assert run_time(packs, output, direction=direction) == 0
    found = set(read_table(output, TIMINGS)["direction"].to_pylist())
    assert found == ({"forward", "backward"} if direction == "both" else {direction})


def test_step_ranges_time_the_packs_of_those_steps(packs, tmp_path):
    output = tmp_path / "timings.parquet"
    assert run_time(packs, output, steps=None, step_range="1:2") == 0
    assert set(read_table(output, TIMINGS)["step"].to_pylist()) == {1}


def corrupt(path):
    path.write_bytes(b"not parquet")
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "fa9"}, "kernel is 'fa9': use one of auto, "),
        ({"q_heads": 3, "kv_heads": 3}, "cp_size is 2: it must divide q_heads (3)"),
        ({"kv_heads": 3}, "kv_heads is 3: it must divide q_heads (4)"),
        ({"head_dim": 512}, "head_dim is 512: kernel torch_cpu runs 1 to 256"),
        ({"head_dim": 0}, "head_dim is 0"),
        ({"dtype": "float16"}, "dtype is float16: kernel torch_cpu runs float32, bfloat16"),
        ({"timed_heads": 0}, "timed_heads is 0: give at least 1, or all"),
        ({"timed_heads": 3}, "timed_heads is 3: at cp_size 1 it must be at most 2 or a multiple"),
        ({"steps": 0}, "--steps is 0: give at least 1"),
        ({"steps": 3}, "has no step 2; ask for fewer steps or sample more"),
        ({"steps": None, "step_range": "2:1"}, "--step-range is '2:1'"),
        ({"budget": 0}, "budget_s is 0.0: give a positive number"),
        ({"width": "nan"}, "width is nan: give a positive number"),
        ({"passes": 0}, "max_passes is 0: give at least 1"),
        ({"strict_device": True}, "--strict-device is given without a device"),
        ({"expect_device": "H100", "strict_device": True}, "but H100 is expected; run on it"),
    ],
)
def test_bad_input_is_one_line(packs, tmp_path, capsys, changes, message):
    output = tmp_path / "timings.parquet"
    assert run_time(packs, output, **changes) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(errors) == 1 and message in errors[0]
    assert not output.exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("kernel", ["fa3", "fa2", "fa4", "torch_varlen"])
def test_no_gpu_is_one_line(packs, tmp_path, capsys, kernel):
    output = tmp_path / "timings.parquet"
    changes = {"kernel": kernel, "head_dim": 64, "dtype": "bfloat16"}
    assert run_time(packs, output, **changes) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert f"kernel is {kernel}: it needs a CUDA device" in error and not output.exists()


def test_auto_says_which_kernel_it_took(packs, tmp_path, capsys):
    assert run_time(packs, tmp_path / "timings.parquet", kernel="auto") == 0
    assert "kernel torch_cpu of torch.nn.functional on" in capsys.readouterr().err


def test_bad_pack_files_are_one_line(packs, tmp_path, capsys):
    output = tmp_path / "timings.parquet"
    other = write_packs(tmp_path / "other.parquet", 4, CP2, tokens_per_gpu=32)
    empty = write_packs(tmp_path / "empty.parquet", 1, [(0, 0, [64, 0])])
    cases = [
        ([tmp_path / "none.parquet"], "no such file"),
        ([corrupt(tmp_path / "bad.parquet")], "not a readable Parquet file"),
        ([packs[0], packs[0]], "has cp_size 1 like"),
        ([packs[0], other], "was not packed from the same lengths with the same settings"),
        ([empty], "pack 0 of step 0 at cp_size 1 has a segment of 0 tokens"),
    ]
    for files, message in cases:
        assert run_time(files, output, steps=1) == 2
        assert message in capsys.readouterr().err


def test_an_unexpected_device_is_a_warning(packs, tmp_path, capsys):
    assert run_time(packs, tmp_path / "timings.parquet", expect_device="H100") == 0
    assert "but H100 is expected" in capsys.readouterr().err


def test_packs_too_large_for_memory_are_refused_before_allocation(tmp_path, capsys):
    huge = write_packs(tmp_path / "cp1.parquet", 1, [(0, 0, [2**31 - 1])])
    assert run_time([huge], tmp_path / "t.parquet", steps=1, q_heads=128, head_dim=256) == 2
    error = capsys.readouterr().err
    assert "needs" in error and "GiB" in error and "use fewer tokens_per_gpu" in error


def test_a_device_that_runs_out_of_memory_is_one_line(packs, tmp_path, capsys, monkeypatch):
    def full(self, call):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nMore lines.")

    monkeypatch.setattr(CpuDevice, "measure", full)
    output = tmp_path / "timings.parquet"
    assert run_time(packs, output) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert "ran out of memory; the largest packs have 64 tokens at cp_size 1 (" in error
    assert "128 tokens at cp_size 2 (" in error and "use fewer tokens_per_gpu" in error
    assert not output.exists()


def test_unknown_throttling_is_said_once(packs, tmp_path, capsys, monkeypatch):
    said = "throttling unknown: the driver does not tell"
    monkeypatch.setattr(CpuDevice, "kind", "cuda")
    assert run_time(packs, tmp_path / "a.parquet") == 0
    assert capsys.readouterr().err.count(said) == 1
    monkeypatch.setattr(CpuDevice, "throttle_reasons", lambda self: ())
    assert run_time(packs, tmp_path / "b.parquet") == 0
    assert "throttling unknown" not in (told := capsys.readouterr().err)
    assert "0 samples left out for throttling" in told
    table = read_table(tmp_path / "b.parquet", TIMINGS)
    assert set(table["throttled"].to_pylist()) == {False}


def test_a_run_killed_at_any_moment_goes_on(packs, tmp_path):
    """A real process, killed without a chance to tidy up, three times."""
    output = tmp_path / "timings.parquet"
    words = time_arguments(packs, output, passes=12, width=1e-9)
    journal = tmp_path / "timings.parquet.partial.jsonl"
    kept = 0
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-m", "cpbalance", *words])
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if journal.is_file() and journal.read_text().count('"pack"') > kept + 3:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.001)
        process.wait()
        if process.returncode == 0:
            break
        assert not output.exists()
        kept = journal.read_text().count('"kind":"pack"')
    before = [json.loads(line) for line in journal.read_text().splitlines()[1:] if line[-1] == "}"]
    done = subprocess.run([sys.executable, "-m", "cpbalance", *words], check=False)
    assert done.returncode == 0 and not journal.exists()
    table = read_table(output, TIMINGS)
    seconds = set(np.asarray(table["seconds"]))
    assert all(r["seconds"] in seconds for r in before), "every sample is kept"
    packs_only = table.filter(pa.compute.equal(table["kind"], "pack"))
    counts = packs_only.group_by(["cp_size", "step", "pack"]).aggregate([("seconds", "count")])
    assert set(counts["seconds_count"].to_pylist()) == {12}


def test_a_journal_of_another_plan_is_not_used(packs, tmp_path, capsys):
    output = tmp_path / "timings.parquet"
    journal = tmp_path / "timings.parquet.partial.jsonl"
    journal.write_text('{"plan":{"stage":"time"}}\n{"seconds": 1}\n')
    assert run_time(packs, output) == 0
    assert "belongs to another plan or kind of device; starting afresh" in capsys.readouterr().err


def interrupted(monkeypatch, packs, output, calls):
    """A run that is stopped once so many packs were called."""
    append, left = FileJournal.append, iter(range(calls - 1))

    def append_and_stop(self, sample):
        append(self, sample)
        if sample.call.kind == "pack" and next(left, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(FileJournal, "append", append_and_stop)
        run_time(packs, output)


def test_a_run_goes_on_at_a_like_device_and_says_so(packs, tmp_path, capsys, monkeypatch):
    output = tmp_path / "timings.parquet"
    journal = tmp_path / "timings.parquet.partial.jsonl"
    monkeypatch.setattr("platform.node", lambda: "node1")
    interrupted(monkeypatch, packs, output, calls=8)
    monkeypatch.setattr("platform.node", lambda: "node2")
    monkeypatch.setattr("platform.platform", lambda: "Linux of the other node")
    before = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    assert {sample["device"] for sample in before} == {"node1"}
    assert [sample["call"]["kind"] for sample in before].count("pack") == 8
    assert run_time(packs, output) == 0
    assert "goes on at node2; calls were made at node1 before" in capsys.readouterr().err
    rows = read_table(output, TIMINGS).sort_by("order").to_pylist()
    (run,) = read_provenance(output, TIMINGS)["runs"]
    assert run["environment"]["host"] == "node2"
    assert {d["device"] for d in run["devices"]} == {"node1", "node2"}
    assert sum(d["calls"] for d in run["devices"]) == len(rows)
    first = next(d for d in run["devices"] if d["device"] == "node1")
    of_first = [r["seconds"] for a, b in first["orders"] for r in rows[a : b + 1]]
    assert sorted(of_first) == sorted(sample["seconds"] for sample in before)


def test_a_run_starts_afresh_at_another_kind_of_device(packs, tmp_path, capsys, monkeypatch):
    output = tmp_path / "timings.parquet"
    interrupted(monkeypatch, packs, output, calls=6)
    monkeypatch.setattr("cpbalance.timing.device.cpu_name", lambda: "another CPU")
    assert run_time(packs, output) == 0
    assert "belongs to another plan or kind of device" in capsys.readouterr().err


def test_timing_needs_neither_pandas_nor_pydantic(packs, tmp_path):
    words = [str(word) for word in time_arguments(packs, tmp_path / "timings.parquet")]
    done = subprocess.run([sys.executable, "-c", ONLY_TORCH_AND_ARROW, *words], check=False)
    assert done.returncode == 0


ONLY_TORCH_AND_ARROW = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"pandas", "pydantic", "scipy", "seaborn", "snakemake", "yaml"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from cpbalance.cli import main
sys.exit(main(sys.argv[1:]))
"""
