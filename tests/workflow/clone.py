"""Copies of the workflow in folders of their own, run as a user runs them.

Snakemake runs in a process of its own. The command ``cpbalance`` and the library are those of the
copy, whatever is installed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[2]
TINY = {
    "experiment": "tiny",
    "seed": 3,
    "steps": 4,
    "cluster": {"world_size": 8, "cp_sizes": [1, 2], "tokens_per_gpu": 512},
    "attention": {"gqa": {"q_heads": 8, "kv_heads": 4, "head_dim": 16, "causal": True}},
    "lengths": {"exponential": {"family": "exponential", "mean": 64, "max_seq_len": 512}},
    "statistics": {"bootstrap": 50},
}


class Clone:
    """A folder with the workflow in it, as after ``git clone``, and the means to run it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if not name.startswith("tests/") and (REPOSITORY / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / name, root / name)
        command = root / ".bin" / "cpbalance"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cpbalance "$@"\n')
        command.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """Variables that make the copy's library and command the ones in use."""
        return {
            "PYTHONPATH": str(self.root / "workflow"),
            "PATH": f"{self.root / '.bin'}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(self.root / ".cache"),
        }

    def run(self, *arguments, config=TINY, folder=None, status=0, **environment) -> str:
        """Run Snakemake on ``config`` (None for the default one); what it printed.

        It works in the copy, or in ``folder`` with the Snakefile that stands there.
        """
        if config is not None:
            path = self.root / "test.yaml"
            path.write_text(yaml.safe_dump(config))
            arguments = (*arguments, "--configfile", str(path))
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", *arguments],
            cwd=folder or self.root,
            env={**os.environ, **self.environment(), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == status, done.stdout
        return done.stdout

    def files(self, folder: str = "results") -> dict[str, bytes]:
        """Content of every file below a folder, by relative path."""
        base = self.root / folder
        return {
            path.relative_to(base).as_posix(): path.read_bytes()
            for path in sorted(base.rglob("*"))
            if path.is_file() and path.name != "README.md"
        }

    def adopt(self, other: "Clone") -> None:
        """Take over the finished results of another clone, and what Snakemake knows of them."""
        shutil.copytree(other.root / "results", self.root / "results", dirs_exist_ok=True)
        notes = ".snakemake/metadata"
        shutil.copytree(other.root / notes, self.root / notes, dirs_exist_ok=True)


def jobs(output: str) -> dict[str, int]:
    """Jobs per rule, from the first table that Snakemake printed; empty if there is none."""
    counts: dict[str, int] = {}
    lines = iter(output.splitlines())
    for line in lines:
        if line.startswith(("Job stats:", "job  ")):
            break
    for line in lines:
        words = line.split()
        if not words and counts:
            break
        if len(words) == 2 and words[1].isdigit():
            counts[words[0]] = int(words[1])
    counts.pop("total", None)
    return counts
