"""``cpbalance slurm``: look at a SLURM site before submitting; cancel the jobs of a lost run."""

import argparse
import getpass
import logging
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cpbalance import slurm
from cpbalance.errors import InputError

HELP = "look at a SLURM site before submitting; cancel the jobs of a lost run"
COMMANDS = ("sbatch", "squeue", "scancel", "sinfo", "scontrol", "srun")
PATIENCE_S = 30
logger = logging.getLogger("cpbalance")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="whether this site can run what a profile submits")
    check.add_argument("--profile", type=Path, required=True, help="folder of the profile")
    cancel = actions.add_parser("cancel", help="cancel jobs of a folder and wait until they ended")
    cancel.add_argument("--folder", type=Path, default=Path(), help="where snakemake was started")
    cancel.add_argument("--patience", type=float, default=300, help="seconds to wait at most")


def run(args: argparse.Namespace) -> None:
    """Do what was asked; raises :class:`~cpbalance.errors.InputError` where the site says no."""
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    if missing:
        raise InputError(
            f"no SLURM on this machine ({', '.join(missing)} not found): run this on a login node "
            f"of the cluster, or run without a profile: snakemake --cores all"
        )
    if args.action == "check":
        check(args.profile)
    else:
        cancel(args.folder.resolve(), args.patience)


def ask(*argv: str) -> str:
    """What a command of SLURM prints; raises InputError with its own words where it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"{argv[0]} gave no answer within {PATIENCE_S} s") from None
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise InputError(f"`{' '.join(argv)}` failed: {words[-1]}")
    return done.stdout


def read_profile(folder: Path) -> Mapping[str, Any]:
    """The profile's settings, as Snakemake reads them."""
    import yte

    path = folder / "config.v9+.yaml"
    if not path.is_file():
        raise InputError(f"{folder}: no profile (it has no config.v9+.yaml); give its folder")
    try:
        with path.open(encoding="utf-8") as stream:
            return yte.process_yaml(stream, require_use_yte=True)
    except Exception as error:  # whatever the expressions in it raise
        raise InputError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from error


def check(folder: Path) -> None:
    """Print what was found, a line each; raise where something is wrong."""
    profile = read_profile(folder)
    faults = list(faults_of(profile))
    for fault in faults:
        logger.error("wrong: %s", fault)
    if faults:
        raise InputError(
            f"{len(faults)} of this site's answers do not fit the profile {folder}; its settings "
            f"are in profiles/site.yaml"
        )


def faults_of(profile: Mapping[str, Any]) -> Iterator[str]:
    """Everything that this site cannot do of what the profile asks for."""
    settings = slurm.parse_settings(ask("scontrol", "show", "config"))
    logger.info(
        "cluster %s, SLURM %s, %s accounting",
        *(settings.get(name, "?") for name in ("ClusterName", "SLURM_VERSION")),
        "with" if slurm.keeps_accounting(settings) else "without",
    )
    yield from slurm.polling_complaints(profile, settings)
    site = slurm.parse_sinfo(ask("sinfo", "-h", "-e", "-o", slurm.SINFO_FORMAT))
    for request in slurm.requests_of(profile):
        found = slurm.complaints(request, site)
        found += list(association_faults(request, settings))
        if not found:
            found = list(submission_faults(request))
        yield from found
        if request.partition in {group.partition for group in site}:
            described = ask("scontrol", "show", "partition", request.partition).replace(" ", "\n")
            mode = slurm.parse_settings(described).get("PreemptMode", "OFF")
            yield from slurm.preemption_complaints(request.partition, mode)


def association_faults(request: slurm.Request, settings: Mapping[str, str]) -> Iterator[str]:
    """Accounts and QOS that the accounting does not know."""
    if settings.get("AccountingStorageType", "").endswith("slurmdbd"):
        user = getpass.getuser()
        known = {
            "account": ("show", "assoc", f"user={user}", "format=account"),
            "qos": ("show", "qos", "format=name"),
        }
        for kind, words in known.items():
            asked = getattr(request, kind)
            there = sorted(set(ask("sacctmgr", "-n", "-P", *words).split()))
            if asked and asked not in there:
                yield f"{request.name}: {kind} is {asked!r}; yours are {', '.join(there) or 'none'}"


def submission_faults(request: slurm.Request) -> Iterator[str]:
    """What SLURM itself says to the job, without submitting it."""
    try:
        ask("sbatch", "--test-only", *request.sbatch, "--wrap", "true")
        logger.info("%s: sbatch %s", request.name, " ".join(request.sbatch))
    except InputError as error:
        yield f"{request.name}: {error}"


def cancel(folder: Path, patience: float) -> None:
    """Cancel this user's jobs that were submitted from ``folder``; return once none is left."""
    deadline = time.monotonic() + patience
    asked: set[str] = set()
    while jobs := slurm.jobs_of_folder(
        ask("squeue", "-h", "-u", getpass.getuser(), "-o", slurm.SQUEUE_FORMAT), str(folder)
    ):
        if time.monotonic() > deadline:
            raise InputError(
                f"jobs {', '.join(jobs)} of {folder} have not ended within {patience:.0f} s of "
                f"being cancelled; try again, or ask the site about them"
            )
        if new := [job for job in jobs if job not in asked]:
            logger.info("cancelling jobs %s of %s", ", ".join(new), folder)
            ask("scancel", *new)
            asked.update(new)
        time.sleep(1)
    logger.info("no job of %s is left", folder)
