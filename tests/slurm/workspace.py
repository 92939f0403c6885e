"""A clone of the workflow whose Snakemake submits to the test cluster, as a user's would."""

import copy
import getpass
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.slurm.machine import call, wait_for
from tests.workflow.harness import Workspace

HERE = Path(__file__).parent
TIMING = "results/small/timings/torch_cpu/full/exponential.parquet"
# The second of the executor's looks comes after 1 s instead of 10; sites are left as they are.
PARTIAL = 25  # calls in the journal that make a job worth resuming
QUICK = ("--slurm-init-seconds-before-status-checks", "1")


@dataclass(frozen=True)
class Job:
    """One job as SLURM remembers it; ``rule`` is the name of a rule or a group."""

    number: int
    state: str
    rule: str
    partition: str
    nodes: str
    memory: str
    limit: str


class SlurmWorkspace(Workspace):
    """A clone at ``folder`` whose jobs go to nodes with one feature."""

    def __init__(self, folder: Path, feature: str = "steady") -> None:
        super().__init__(folder)
        (folder / "slurm-h100").symlink_to("profiles/slurm-h100")
        shutil.copy2(HERE / "small.yaml", folder / "small.yaml")
        self.set_site(constraint=feature, gpu_mem_mb=1500, gpu_cpus=1, gpu_minutes=5)

    def copy(self, folder: Path, feature: str = "steady") -> "SlurmWorkspace":
        """This workspace, results and Snakemake's notes included, at another place."""
        shutil.copytree(self.folder, folder, symlinks=True)
        other = copy.copy(self)
        other.folder = folder
        other.set_site(constraint=feature)
        return other

    def set_site(self, **settings: object) -> None:
        """Change settings of profiles/site.yaml."""
        path = self.folder / "profiles/site.yaml"
        site = yaml.safe_load(path.read_text())
        assert settings.keys() <= site.keys()
        path.write_text(yaml.safe_dump(site | settings))

    def set_config(self, **settings: object) -> None:
        """Change keys of the experiment."""
        path = self.folder / "small.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | settings))

    def set_timing(self, **settings: object) -> None:
        """Change how the kernel is timed."""
        timing = yaml.safe_load((self.folder / "small.yaml").read_text())["timing"]
        self.set_config(timing={"torch_cpu": timing["torch_cpu"] | settings})

    def forget(self) -> None:
        """Back to a fresh clone."""
        for name in ("results", "logs", "notes", ".snakemake"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def set_fault(self, **fault: object) -> None:
        """Let a stage fail; see faults/sitecustomize.py."""
        default = {"stage": "time", "output": "exponential", "after": PARTIAL, "times": 1}
        (self.folder / "fault.json").write_text(json.dumps(default | fault))

    @property
    def environment(self) -> dict[str, str]:
        """As in a user's shell, and with what injects the fault, if there is one."""
        inherited = super().environment
        path = f"{HERE / 'faults'}{os.pathsep}{inherited['PYTHONPATH']}"
        fault = self.folder / "fault.json"
        return {
            **{k: v for k, v in inherited.items() if not k.startswith(("SLURM_", "SNAKEMAKE_"))},
            "PYTHONPATH": path,
            "CPBALANCE_FAULT": str(fault) if fault.exists() else "",
            "CPBALANCE_NOTES": str(self.folder / "notes"),
        }

    def digests(self, *folders: str) -> dict[str, str]:
        """SHA-256 of every file below folders of the results, of all of them by default."""
        root = self.folder / "results/small"
        files = [p for f in folders or (".",) for p in (root / f).rglob("*") if p.is_file()]
        return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}

    # --- running --------------------------------------------------------------------------------

    def submit(self, *targets: str, limit: int = 240) -> "Run":
        """`snakemake --profile slurm-h100`, in the background, killed after ``limit`` seconds."""
        argv = ("snakemake", "--profile", "slurm-h100", "--configfile", "small.yaml", *QUICK)
        return Run(self, [*argv, *targets], limit)

    def again(self, *targets: str, limit: int = 240) -> "Run":
        """What `make slurm` runs: the one command that finishes the work after any fault."""
        argv = ("scripts/run.sh", "--cancel-jobs", "--profile", "slurm-h100")
        return Run(self, [*argv, "--configfile", "small.yaml", *QUICK, *targets], limit)

    def jobs(self, rule: str = "") -> list[Job]:
        """All jobs ever submitted from here, in order; those of one rule or group."""
        squeue = ("squeue", "-h", "--states=all", "-u", getpass.getuser())
        lines = call(*squeue, "-o", "%A|%T|%k|%P|%N|%m|%l|%Z").stdout.splitlines()
        found = set()
        for line in lines:
            number, state, comment, *more, folder = line.split("|")
            if folder == str(self.folder) and comment.startswith(f"rule_{rule}"):
                name = comment.removeprefix("rule_").partition("_wildcards_")[0]
                found.add(Job(int(number), state, name, *more))
        return sorted(found, key=lambda job: job.number)

    def running(self, rule: str = "time_kernels") -> Job:
        """The job of ``rule`` that runs now and has partial results; waits for it."""

        def there() -> list[Job]:
            return [job for job in self.jobs(rule) if job.state == "RUNNING"]

        wait_for(f"running job of {rule} in {self.folder}", lambda: bool(there()), 120)
        if rule == "time_kernels":
            wait_for("partial results", lambda: self.partial_results() >= PARTIAL, 90)
        return there()[0]

    def partial_results(self) -> int:
        """Lines of the timing's journal."""
        journal = self.folder / f"{TIMING}.partial.jsonl"
        return journal.read_bytes().count(b"\n") if journal.exists() else 0

    def notes(self, stage: str) -> list[dict]:
        """Where the runs of a stage found themselves: node, visible GPUs, job, command line."""
        found = [json.loads(path.read_text()) for path in (self.folder / "notes").glob("*.json")]
        return [note for note in found if stage in note["argv"]]

    def timing_log(self) -> str:
        """Log of the timing job."""
        return (self.folder / "logs/time_kernels/torch_cpu/full/exponential.log").read_text()


class Run:
    """A command in a workspace; its output goes to a file beside the results."""

    def __init__(self, workspace: SlurmWorkspace, argv: list[str], limit: int) -> None:
        self.started = time.monotonic()
        self._output = workspace.folder / f"output-{len(workspace.jobs())}-{time.time_ns()}.txt"
        with self._output.open("w") as stream:
            # timeout dies with this process, and the command with timeout, whatever happens.
            dies_with_parent = ("setpriv", "--pdeathsig", "KILL")
            self._process = subprocess.Popen(
                [*dies_with_parent, "timeout", "-s", "KILL", str(limit), *dies_with_parent, *argv],
                cwd=workspace.folder,
                env=workspace.environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def send(self, number: int) -> None:
        """Signal the command itself, as a user or a closing login node does."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for pid in children.read_text().split():
            os.kill(int(pid), number)

    def kill(self) -> None:
        """The login node is gone."""
        self.send(signal.SIGKILL)
        self._process.wait(30)

    def wait(self) -> int:
        """Exit status; a run over its limit is a failure of the test."""
        status = self._process.wait()
        assert status not in (-9, 137), f"killed at its limit:\n{self.output[-3000:]}"
        return status

    def check(self) -> "Run":
        """Wait for success; show the output otherwise."""
        status = self.wait()
        assert status == 0, f"status {status}:\n{self.output[-6000:]}"
        return self

    @property
    def output(self) -> str:
        """All that was printed so far."""
        return self._output.read_text()
