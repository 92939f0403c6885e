"""The command line: ``cpbalance STAGE …``, one module of this package a stage.

A stage module offers ``HELP`` (one line), ``add_arguments(parser)`` and ``run(args)``. It is
imported only when asked for, so that ``cpbalance time`` runs where only torch, numpy and pyarrow
are installed. Messages go to the logger ``cpbalance``: to standard error, and to ``--log`` too.
"""

import argparse
import errno
import importlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from cpbalance import __version__
from cpbalance.errors import InputError

COMMANDS = (
    "sample",
    "pack",
    "simulate",
    "theory",
    "families",
    "merge",
    "time",
    "kernels",
    "calibrate",
    "aggregate",
    "plot",
    "artifact",
    "page",
    "paper",
    "schema",
    "slurm",
    "preflight",
    "estimate",
)

# The machine's storage said no: nothing that code could do better.
STORAGE_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)

logger = logging.getLogger("cpbalance")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one stage; exit status 0, or 2 after one line about bad input."""
    argv = list(sys.argv[1:] if argv is None else argv)
    args = _parser(argv).parse_args(argv)
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if args.log is not None:
        args.log.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(args.log, mode="w", encoding="utf-8"))
    # Only our own messages at level INFO: libraries tell their debugging stories there.
    logging.basicConfig(format="%(message)s", level=logging.WARNING, handlers=handlers, force=True)
    logger.setLevel(logging.INFO)
    try:
        args.run(args)
    except InputError as error:
        logger.error("cpbalance %s: error: %s", args.command, error)
        return 2
    except Exception as error:
        if isinstance(error, OSError) and error.errno in STORAGE_FAULTS:
            where = f"{error.filename}: " if error.filename else ""
            logger.error("cpbalance %s: error: %s%s", args.command, where, error.strerror)
            return 2
        logger.exception(
            "cpbalance %s: this is a fault of cpbalance, not of your input", args.command
        )
        return 1
    return 0


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cpbalance",
        description="How context parallelism balances attention work across data-parallel ranks.",
    )
    parser.add_argument("--version", action="version", version=f"cpbalance {__version__}")
    parser.add_argument("--log", type=Path, help="file that gets a copy of all messages")
    stages = parser.add_subparsers(dest="command", metavar="STAGE", required=True)
    # Only the stage asked for is imported; for help, all are.
    asked = next((word for word in argv if word in COMMANDS), None)
    for name in COMMANDS if asked is None else (asked,):
        module = importlib.import_module(f"cpbalance.cli.{name}")
        stage = stages.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(stage)
        stage.set_defaults(run=module.run)
    return parser
