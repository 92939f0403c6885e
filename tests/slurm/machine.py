"""What the cluster needs of the machine: root, Debian, packages; and commands run under a limit."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

ETC = Path("/etc/slurm")
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge", "slurmdbd", "mariadb-server")


class Unavailable(Exception):
    """This machine cannot run the cluster; the message says why."""


def call(*argv: str, timeout: float = 30, **kwargs) -> subprocess.CompletedProcess:
    """Run a command to its end, output captured, killed after ``timeout`` seconds."""
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, **kwargs)


def wait_for(what: str, true: Callable[[], bool], timeout: float = 60) -> None:
    """Poll until ``true``; raises TimeoutError that names ``what``."""
    deadline = time.monotonic() + timeout
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout:.0f} s")
        time.sleep(0.1)


def require() -> None:
    """Raise Unavailable where a cluster cannot be had."""
    if os.geteuid() != 0:
        raise Unavailable("starting SLURM daemons needs root")
    if not Path("/etc/debian_version").exists() or not shutil.which("apt-get"):
        raise Unavailable("the cluster comes from Debian's packages, and this is no Debian")
    for name in ("slurm.conf", "slurmdbd.conf"):
        if (ETC / name).exists() and not (ETC / name).is_symlink():
            raise Unavailable(f"{ETC / name} exists: this machine has a SLURM of its own")


def install() -> None:
    """Install what is missing of the packages; their services are not started."""
    missing = [p for p in PACKAGES if call("dpkg", "-s", p).returncode]
    if not missing:
        return
    # The daemons are started here, never by the packages' own scripts.
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    apt = ("apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300")
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        for argv in ([*apt, "update"], [*apt, "install", "--no-install-recommends", *missing]):
            done = call(*argv, timeout=600, env=env)
            if done.returncode:
                raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()[-400:]}")
    finally:
        if ours:
            policy.unlink()


class Disk:
    """A file system of its own, of ``size``, that holds what the folder held."""

    def __init__(self, folder: Path, size: str) -> None:
        self._folder, self._size = folder, size

    def __enter__(self) -> None:
        kept = self._folder.with_name("kept")
        self._folder.rename(kept)
        self._folder.mkdir()
        options = f"size={self._size}"
        call("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self._folder)).check_returncode()
        call("cp", "-a", f"{kept}/.", str(self._folder)).check_returncode()

    def __exit__(self, *_: object) -> None:
        kept = self._folder.with_name("kept-after")
        call("cp", "-a", f"{self._folder}/.", str(kept))
        call("umount", "-l", str(self._folder)).check_returncode()
        self._folder.rmdir()
        if kept.exists():
            kept.rename(self._folder)
