"""``cpbalance pack``: pack the documents of every step for one context-parallel degree."""

import argparse
from pathlib import Path

import numpy as np

from cpbalance.errors import InputError
from cpbalance.packing import pack_documents
from cpbalance.shards import WHOLE, parse_shard
from cpbalance.stage_schemas import LENGTHS, PACKS
from cpbalance.tables import iter_row_groups, read_provenance, table_writer

HELP = "pack documents into the micro-batches of one CP degree"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    parser.add_argument("--lengths", type=Path, required=True, help="file of the sample stage")
    parser.add_argument("--packing", required=True, help="packing policy")
    parser.add_argument("--world-size", type=int, required=True)
    parser.add_argument("--tp-size", type=int, default=1)
    parser.add_argument("--cp-size", type=int, required=True)
    parser.add_argument("--tokens-per-gpu", type=int, required=True)
    parser.add_argument(
        "--shard", default=str(WHOLE), metavar="K-of-N", help="pack this share of the steps alone"
    )
    parser.add_argument("--output", type=Path, required=True)


def run(args: argparse.Namespace) -> None:
    """Write the segments of all packs of all steps."""
    for key in ("world_size", "tp_size", "cp_size", "tokens_per_gpu"):
        if getattr(args, key) < 1:
            raise InputError(f"--{key.replace('_', '-')} is {getattr(args, key)}: give at least 1")
    if args.world_size % (args.tp_size * args.cp_size):
        raise InputError(
            f"--tp-size {args.tp_size} times --cp-size {args.cp_size} must divide --world-size "
            f"{args.world_size}"
        )
    packs_per_step = args.world_size // (args.tp_size * args.cp_size)
    pack_tokens = args.cp_size * args.tokens_per_gpu
    shard = parse_shard(args.shard)
    source = read_provenance(args.lengths, LENGTHS)
    provenance = {
        "stage": "pack",
        "packing": args.packing,
        "world_size": args.world_size,
        "tp_size": args.tp_size,
        "cp_size": args.cp_size,
        "dp_size": packs_per_step,
        "tokens_per_gpu": args.tokens_per_gpu,
        "source": source,
    }
    with table_writer(args.output, PACKS, provenance) as writer:
        for group in iter_row_groups(args.lengths, LENGTHS, shard):
            steps, counts = np.unique(group["step"].to_numpy(), return_counts=True)
            segments = pack_documents(
                args.packing, group["num_tokens"].to_numpy(), counts, pack_tokens, packs_per_step
            )
            writer.write(
                {
                    "step": steps[segments.step],
                    "pack": segments.pack,
                    "segment_tokens": segments.segment_tokens,
                }
            )
