"""The command line: ``cpbalance STAGE …``, one module of this package a stage.

A stage module offers ``HELP`` (one line), ``add_arguments(parser)`` and ``run(args)``. It is
imported only when asked for, so that ``cpbalance time`` runs where only torch, numpy and pyarrow
are installed.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from cpbalance import __version__
from cpbalance.errors import InputError

COMMANDS = ("sample", "pack", "simulate")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one stage; exit status 0, or 2 after one line about bad input."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="cpbalance", description=__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=f"cpbalance {__version__}")
    stages = parser.add_subparsers(dest="command", metavar="STAGE", required=True)
    # Only the stage asked for is imported; for help, all are.
    asked = next((word for word in argv if not word.startswith("-")), None)
    for name in COMMANDS if asked not in COMMANDS else (asked,):
        module = importlib.import_module(f"cpbalance.cli.{name}")
        stage = stages.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(stage)
        stage.set_defaults(run=module.run)
    args = parser.parse_args(argv)
    try:
        args.run(args)
    except InputError as error:
        print(f"cpbalance {args.command}: error: {error}", file=sys.stderr)
        return 2
    return 0

