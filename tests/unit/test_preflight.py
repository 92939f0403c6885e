"""What a job refuses before it spends time on a device, each in one line."""

import subprocess
import sys

import pytest

from cpbalance.cli import main

READY = {
    "--kernel": "torch_cpu",
    "--q-heads": "8",
    "--kv-heads": "8",
    "--head-dim": "64",
    "--dtype": "float32",
    "--tokens-per-gpu": "1024",
}


def preflight(folder, *more, **changes):
    options = READY | {"--output-dir": str(folder / "results")}
    options |= {f"--{key.replace('_', '-')}": str(value) for key, value in changes.items()}
    words = [word for pair in options.items() for word in pair]
    return main(["preflight", "--full", "--cp-sizes", "1", "8", *words, *more])


def test_a_machine_that_can_time_says_so(tmp_path, capsys):
    assert preflight(tmp_path) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ready: kernel torch_cpu")
    assert list((tmp_path / "results").iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kernel": "fa9"}, ["'fa9'", "torch_cpu"]),
        ({"tokens_per_gpu": 0}, ["0", "at least 1"]),
        ({"tokens_per_gpu": 10**9}, ["GiB", "free", "fewer tokens_per_gpu"]),
        ({"q_heads": 12, "kv_heads": 12}, ["cp_size is 8", "divide q_heads (12)"]),
        ({"dtype": "float16"}, ["float16", "torch_cpu"]),
    ],
)
def test_what_is_missing_is_named_in_one_line(tmp_path, capsys, changes, words):
    assert preflight(tmp_path, **changes) == 2
    (line,) = capsys.readouterr().err.splitlines()
    for word in words:
        assert word in line


def test_another_device_is_warned_of_or_refused(tmp_path, capsys):
    assert preflight(tmp_path, expect_device="H100") == 0
    assert "warning: device is" in capsys.readouterr().err
    assert preflight(tmp_path, "--strict-device", expect_device="H100") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "but H100 is expected" in line


def test_an_output_folder_that_takes_no_files_is_refused_first(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert preflight(tmp_path, kernel="fa9", output_dir=tmp_path / "file" / "results") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Not a directory" in line and "4 MiB" in line


def test_a_gpu_kernel_without_gpu_is_refused(tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    words = [word for pair in (READY | {"--kernel": "fa3"}).items() for word in pair]
    words[words.index("float32")] = "bfloat16"
    done = subprocess.run(
        [sys.executable, "-m", "cpbalance", "preflight", "--full", "--cp-sizes", "1", *words],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and "CUDA" in line
