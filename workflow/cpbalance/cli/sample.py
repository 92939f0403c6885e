"""``cpbalance sample``: draw the documents of every step from one source."""

import argparse
import json
import logging
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from cpbalance.config import Lengths, LengthsFile
from cpbalance.errors import InputError
from cpbalance.lengths import make_sampler
from cpbalance.lengths.files import read_lengths
from cpbalance.tables import LENGTHS, STEPS_PER_ROW_GROUP, file_digest, table_writer

logger = logging.getLogger("cpbalance")

HELP = "draw document lengths, step by step"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    parser.add_argument("--name", required=True, help="name of the source; part of the seed")
    parser.add_argument(
        "--lengths", required=True, metavar="JSON", help="the source, as in the configuration"
    )
    parser.add_argument("--tokens-per-gpu", type=int, required=True)
    parser.add_argument("--tokens-per-step", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--digest", help="SHA-256 of a file of lengths, checked before it is used")
    parser.add_argument("--output", type=Path, required=True)


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


def run(args: argparse.Namespace) -> None:
    """Write the lengths of all steps."""
    for key in ("tokens_per_gpu", "tokens_per_step", "steps"):
        if getattr(args, key) < 1:
            raise InputError(f"--{key.replace('_', '-')} is {getattr(args, key)}: give at least 1")
    if args.seed < 0:
        raise InputError(f"--seed is {args.seed}: give 0 or more")
    lengths = parse_lengths(args.lengths)
    population, dropped = load_population(lengths, args.digest)
    sampler = make_sampler(
        args.name, lengths, args.tokens_per_gpu, args.tokens_per_step, args.seed, population
    )
    provenance = {
        "stage": "sample",
        "name": args.name,
        "lengths": json.loads(args.lengths),
        "seed": args.seed,
        "steps": args.steps,
        "tokens_per_gpu": args.tokens_per_gpu,
        "tokens_per_step": args.tokens_per_step,
        "dropped_empty_documents": dropped,
    }
    if dropped:
        logger.info("%s: left out %d documents of no tokens", lengths.file, dropped)
    with table_writer(args.output, LENGTHS, provenance) as writer:
        for first in range(0, args.steps, STEPS_PER_ROW_GROUP):
            steps = range(first, min(first + STEPS_PER_ROW_GROUP, args.steps))
            documents = [sampler.documents(step) for step in steps]
            counts = [len(part) for part in documents]
            writer.write(
                {
                    "step": np.repeat(np.array(steps, dtype=np.int32), counts),
                    "num_tokens": np.concatenate(documents),
                }
            )
