"""How a run was made: the command that makes it again, the code, the machine, the software."""

import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cpbalance import __version__
from cpbalance.cli import COMMANDS
from cpbalance.errors import InputError
from cpbalance.tracking import PACKAGE, code_digest

# What a run without git history and without SOURCE_DATE_EPOCH is dated: the same every time.
NO_DATE = "1980-01-01T00:00:00+00:00"


def run_document(command: str, seed: int | None) -> dict[str, Any]:
    """Content of ``run.json``: what makes the run again, and the code of every subcommand."""
    name, committed = revision()
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is not None and not epoch.isdecimal():
        raise InputError(f"SOURCE_DATE_EPOCH is {epoch!r}: give seconds since 1970, or unset it")
    date = datetime.fromtimestamp(int(epoch), UTC).isoformat() if epoch else committed
    return {
        "command": command,
        "seed": seed,
        "version": __version__,
        "revision": name,
        "date": date,
        "code": {stage: code_digest(stage) for stage in COMMANDS},
    }


def environment_document() -> dict[str, Any]:
    """Content of ``environment.json``: the machine that exports, and every package installed."""
    found = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
    packages = dict(sorted(found.items(), key=lambda item: item[0].casefold()))
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "packages": packages,
    }


def revision() -> tuple[str | None, str]:
    """Git revision of the code, ``+changes`` where files differ from it, and its commit date.

    None and :data:`NO_DATE` where the code is in no repository, or in one that does not track it.
    """
    if _git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None, NO_DATE
    name, date = (_git("log", "-1", "--format=%H %cI") or f"? {NO_DATE}").split()
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return name + ("+changes" if changed else ""), date


def _git(*arguments: str) -> str | None:
    """Output of git in the folder of the code, None where git fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(PACKAGE), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    """Model of the processor, as the system names it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
