"""Notes where a stage of cpbalance runs, and lets it fail as a test asks for.

On PYTHONPATH of the tests' jobs alone; Python imports this module at its start. A note of each
stage goes to the folder named by CPBALANCE_NOTES.

The file named by CPBALANCE_FAULT holds {"stage", "output", "what", "after", "times"}: the command
``cpbalance STAGE`` whose arguments hold ``output`` does ``what`` once its journal of partial
results has ``after`` lines, the first ``times`` times.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

NOTED = ("CUDA_VISIBLE_DEVICES", "SLURMD_NODENAME", "SLURM_JOB_ID")


def take_note():
    noted = {name: os.environ.get(name) for name in NOTED} | {"argv": sys.orig_argv}
    folder = Path(os.environ["CPBALANCE_NOTES"])
    folder.mkdir(exist_ok=True)
    (folder / f"{os.environ.get('SLURM_JOB_ID', '')}-{os.getpid()}.json").write_text(
        json.dumps(noted)
    )


def fault_of_this_process():
    name = os.environ.get("CPBALANCE_FAULT", "")
    words = sys.orig_argv
    if not name:
        return None
    fault = json.loads(Path(name).read_text())
    if fault["stage"] not in words or not any(fault["output"] in word for word in words):
        return None
    for number in range(fault["times"]):
        try:
            Path(f"{name}.{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return fault
    return None


def partial_results():
    output = Path(sys.orig_argv[sys.orig_argv.index("--output") + 1])
    journal = output.with_name(f"{output.name}.partial.jsonl")
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def commit(fault):
    while partial_results() < fault["after"]:
        time.sleep(0.02)
    if fault["what"] == "exit":
        os._exit(7)
    if fault["what"] == "hang":
        os.kill(os.getpid(), signal.SIGSTOP)
    if fault["what"] == "memory":
        hoard = []
        while True:  # until SLURM's accounting sees it; 64 MiB each tenth of a second
            hoard.append(b"x" * (64 << 20))
            time.sleep(0.1)
            if len(hoard) > 60:
                os.kill(os.getpid(), signal.SIGSTOP)


if any(word.endswith("cpbalance") for word in sys.orig_argv[:4]):
    take_note()
    fault = fault_of_this_process()
    if fault is not None:
        threading.Thread(target=commit, args=(fault,), daemon=True).start()
