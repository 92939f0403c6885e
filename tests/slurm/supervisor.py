"""Parent of a cluster's daemons: ends every process of the cluster when its own parent goes.

It reads one JSON command a line and answers with one JSON line. When its input closes, because the
test run ended in whatever way, or when it is told to end, it stops the daemons in reverse order of
their start, then whatever they left behind. As a child subreaper (prctl(2), PR_SET_CHILD_SUBREAPER)
it inherits every process that a daemon or a job detaches, so that none escapes.

    {"do": "start", "name": "slurmctld", "argv": ["slurmctld", "-D"], "log": "/…/slurmctld.log"}
    {"do": "stop", "name": "slurmctld", "signal": 9}
    {"do": "alive"}
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 8.0


def become_subreaper() -> None:
    """Inherit orphaned descendants of this process."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def processes() -> dict[int, list[int]]:
    """Living and undead process ids by parent."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue  # it ended while we looked
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    return children


def descendants(root: int) -> list[int]:
    """Process ids below ``root``, children before grandchildren."""
    children = processes()
    found = [root]
    for pid in found:
        found.extend(children.get(pid, []))
    return found[1:]


def send(pid: int, number: int) -> None:
    """Signal a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class Daemons:
    """Named children, in order of their start."""

    def __init__(self) -> None:
        self.running: dict[str, subprocess.Popen] = {}

    def start(self, name: str, argv: list[str], log: str) -> int:
        self.stop(name)
        with Path(log).open("ab") as stream:
            self.running[name] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
                # Configuration comes from the default place, whatever the caller has set.
                env={k: v for k, v in os.environ.items() if not k.startswith("SLURM_")},
            )
        return self.running[name].pid

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        process = self.running.pop(name, None)
        if process is None:
            return
        send(process.pid, number)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def crash(self, name: str, mark: str) -> None:
        """Kill a daemon, all whose environment holds ``mark`` and their step managers, at once.

        All are stopped before the first is killed: none lives to report the end of another.
        """
        daemon = self.running[name]
        parents = {child: pid for pid, found in processes().items() for child in found}
        doomed = {daemon.pid}
        for pid in descendants(os.getpid()):
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue  # it ended while we looked
            while mark.encode() in environment and pid != os.getpid():
                doomed.add(pid)
                pid = parents.get(pid, os.getpid())
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in doomed:
                send(pid, number)
        self.stop(name)

    def alive(self) -> list[str]:
        return [name for name, process in self.running.items() if process.poll() is None]

    def reap(self) -> None:
        """Collect the dead that were inherited; the daemons' own status is left to Popen."""
        mine = {process.pid for process in self.running.values()}
        for pid in processes().get(os.getpid(), []):
            if pid not in mine:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def stop_all(self) -> None:
        # Nodes take their time where their controller is gone: all at once. Jobs end with the step
        # managers, which are killed just below.
        for process in self.running.values():
            if process.args[0] == "slurmd":
                send(process.pid, signal.SIGTERM)
        for name in reversed(list(self.running)):
            self.stop(name)
        deadline = time.monotonic() + PATIENCE_S
        while pids := descendants(os.getpid()):
            for pid in pids:
                send(pid, signal.SIGKILL)
            self.reap()
            if time.monotonic() > deadline:
                raise RuntimeError(f"still alive: {pids}")
            time.sleep(0.05)


def main() -> None:
    """Serve commands until the input closes."""
    become_subreaper()
    daemons = Daemons()
    # Ctrl-C goes to the whole foreground group; the end of the input is what ends the cluster.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGCHLD, lambda *_: daemons.reap())
    try:
        for line in sys.stdin:
            command = json.loads(line)
            what = command.pop("do")
            try:
                answer = {"ok": getattr(daemons, what)(**command)}
            except OSError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        daemons.stop_all()


if __name__ == "__main__":
    main()
