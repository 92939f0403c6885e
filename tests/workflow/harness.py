"""A copy of the workflow in a folder of its own, and Snakemake run in it as a user would."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PARTS = ("Snakefile", "workflow", "config", "resources", "envs", "scripts", "profiles")
TIMEOUT_S = 300


class Workspace:
    """A clone of the workflow without its history; ``snakemake`` uses its own library."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in PARTS:
            source = REPOSITORY / part
            if source.is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, folder / part, symlinks=True, ignore=ignore)
            elif source.exists():
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, folder / part)
        for file in (REPOSITORY / "tests" / "data").glob("tiny*"):
            shutil.copy2(file, folder / file.name)

    @classmethod
    def at(cls, folder: Path) -> "Workspace":
        """The workspace that stands in ``folder`` already."""
        workspace = object.__new__(cls)
        workspace.folder = folder
        return workspace

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which ``cpbalance`` is this copy's."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return os.environ | {"PATH": path, "PYTHONPATH": str(self.folder / "workflow")}

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command here; on failure with ``check``, fail with what it printed."""
        done = subprocess.run(
            ["timeout", "-s", "KILL", str(TIMEOUT_S), *command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        if check and done.returncode:
            raise AssertionError(
                f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done

    def start(self, *command: str) -> subprocess.Popen:
        """Start a command, silent and in a session of its own: one signal reaches all of it."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def snakemake(
        self, *arguments: str, config: str = "tiny.yaml", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run Snakemake here, by default on two cores."""
        cores = () if "--cores" in arguments else ("--cores", "2")
        return self.run("snakemake", "--configfile", config, *cores, *arguments, check=check)

    def jobs(self, *arguments: str, config: str = "tiny.yaml") -> dict[str, int]:
        """Jobs of each rule that a run would start."""
        listed = self.snakemake("--quiet", "host", "--dry-run", *arguments, config=config).stdout
        counts = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", listed, re.M)}
        counts.pop("total", None)
        return counts

    def digests(self, *folders: str) -> dict[str, str]:
        """SHA-256 of every file below folders of the results."""
        root = self.folder / "results" / "tiny"
        files = sorted(p for f in folders or (".",) for p in (root / f).rglob("*") if p.is_file())
        return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace text in a file, which must hold it once."""
        file = self.folder / path
        text = file.read_text()
        assert text.count(old) == 1, f"{path} holds {old!r} {text.count(old)} times"
        file.write_text(text.replace(old, new))
