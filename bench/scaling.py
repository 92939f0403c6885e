"""Time and peak memory of each stage's command at 1, 10 and 100 times the work.

Time must grow in proportion; memory must not grow, since stages read and write chunks of steps.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

STEPS = 100
LENGTHS = {"family": "exponential", "mean": 1024, "min_tokens": 10, "max_seq_len": 8192}
# Runs a command and prints its seconds and the peak resident memory of its process, in KiB.
WRAPPER = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def _commands(folder: Path, steps: int) -> dict[str, str]:
    cluster = "--world-size 128 --tokens-per-gpu 8192 --cp-size 1"
    layer = "--q-heads 64 --kv-heads 64 --head-dim 128 --full"
    return {
        "sample": f"--name x --tokens-per-gpu 8192 --tokens-per-step 1048576 --steps {steps} "
        f"--seed 0 --output {folder}/lengths.parquet --lengths",
        "pack": f"--lengths {folder}/lengths.parquet --packing concat_split {cluster} "
        f"--output {folder}/packs.parquet",
        "simulate": f"--packs {folder}/packs.parquet {layer} --cost quadratic "
        f"--output {folder}/costs.parquet",
        "aggregate": f"--costs {folder}/costs.parquet --lengths {folder}/lengths.parquet "
        f"--output-dir {folder}/tables",
    }


def run() -> pd.DataFrame:
    """One row a stage and size; the start of Python, about the same for all, is in both numbers."""
    rows = []
    for factor in (1, 10, 100):
        with tempfile.TemporaryDirectory() as name:
            for stage, arguments in _commands(Path(name), STEPS * factor).items():
                words = [sys.executable, "-m", "cpbalance", stage, *arguments.split()]
                words += [json.dumps(LENGTHS)] if stage == "sample" else []
                done = subprocess.run(
                    [sys.executable, "-c", WRAPPER, *words],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                seconds, kibibytes = done.stdout.split()
                rows.append(
                    {
                        "stage": stage,
                        "work": factor,
                        "seconds": float(seconds),
                        "peak MiB": float(kibibytes) / 1024,
                    }
                )
    frame = pd.DataFrame(rows).sort_values(["stage", "work"], kind="stable", ignore_index=True)
    base = frame.groupby("stage")[["seconds", "peak MiB"]].transform("first")
    frame["time / smallest"] = frame["seconds"] / base["seconds"]
    frame["memory / smallest"] = frame["peak MiB"] / base["peak MiB"]
    return frame
