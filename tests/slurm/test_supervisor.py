"""No process of a cluster outlives its test run, however that ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# A daemon that detaches a child of its own, which detaches another: as slurmd and its jobs do.
DAEMON = "setsid sh -c 'setsid sleep 301 & sleep 302' & sleep 303"
# A test run that starts a supervisor with one daemon, says so, and waits.
TEST_RUN = """
import json, subprocess, sys, time
supervisor = subprocess.Popen(
    [sys.executable, {script!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)
start = {{"do": "start", "name": "daemon", "argv": ["sh", "-c", {daemon!r}], "log": {log!r}}}
print(json.dumps(start), file=supervisor.stdin, flush=True)
print(supervisor.pid, supervisor.stdout.readline(), flush=True)
time.sleep(600)
"""


def marked(mark: str) -> list[int]:
    """Living processes whose environment holds ``mark``."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            environment = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if mark.encode() in environment:
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("end", ["test run is killed", "supervisor is told to end"])
def test_nothing_is_left(tmp_path, end):
    mark = f"SUPERVISED={tmp_path}"
    script = TEST_RUN.format(
        script=str(HERE / "supervisor.py"), daemon=DAEMON, log=str(tmp_path / "log")
    )
    test_run = subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | {"SUPERVISED": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        supervisor, _, answer = test_run.stdout.readline().partition(" ")
        assert "ok" in json.loads(answer)
        time.sleep(0.5)  # for the daemon's children to detach
        assert len(marked(mark)) >= 5
        if end == "test run is killed":
            test_run.kill()
        else:
            os.kill(int(supervisor), signal.SIGTERM)
        deadline = time.monotonic() + 20
        spared = {test_run.pid}
        while set(marked(mark)) - spared and time.monotonic() < deadline:
            time.sleep(0.1)
        assert set(marked(mark)) <= spared
    finally:
        test_run.kill()
        test_run.wait()
