"""``cpbalance sample``: draw the documents of every step from one source."""

import argparse
import json
import logging
from pathlib import Path

import numpy as np

from cpbalance.cli.lengths_arguments import add_lengths_arguments, load_population, parse_lengths
from cpbalance.errors import InputError
from cpbalance.lengths import make_sampler
from cpbalance.stage_schemas import LENGTHS
from cpbalance.tables import STEPS_PER_ROW_GROUP, table_writer

logger = logging.getLogger("cpbalance")

HELP = "draw document lengths, step by step"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    add_lengths_arguments(parser)
    parser.add_argument("--tokens-per-gpu", type=int, required=True)
    parser.add_argument("--tokens-per-step", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)


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
