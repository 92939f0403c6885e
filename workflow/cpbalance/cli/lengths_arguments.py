"""Command-line arguments that name a source of lengths, shared by the stages that take one."""

import argparse

import numpy as np
from pydantic import TypeAdapter, ValidationError

from cpbalance.config_lengths import Lengths, LengthsFile
from cpbalance.errors import InputError
from cpbalance.lengths.files import read_lengths
from cpbalance.tables import file_digest


def add_lengths_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that name a source of lengths."""
    parser.add_argument("--name", required=True, help="name of the source; part of the seed")
    parser.add_argument(
        "--lengths", required=True, metavar="JSON", help="the source, as in the configuration"
    )
    parser.add_argument("--digest", help="SHA-256 of a file of lengths, checked before it is used")


def parse_lengths(text: str) -> Lengths:
    """A source from JSON; raises :class:`~cpbalance.errors.InputError`."""
    try:
        return TypeAdapter(Lengths).validate_json(text)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise InputError(f"--lengths {text[:80]}: {where}: {fault['msg']}") from None


def load_population(lengths: Lengths, digest: str | None = None) -> tuple[np.ndarray | None, int]:
    """Lengths of the file that a source names and its dropped documents; None for a family."""
    if not isinstance(lengths, LengthsFile):
        return None, 0
    if digest is not None and (found := file_digest(lengths.file)) != digest:
        raise InputError(
            f"{lengths.file}: SHA-256 is {found[:12]}…, not {digest[:12]}…: the file changed since "
            f"the workflow started; run it again"
        )
    return read_lengths(lengths.file, lengths.column)
