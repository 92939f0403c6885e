"""``cpbalance simulate``: cost of every pack on one rank of its group."""

import argparse
from pathlib import Path

import numpy as np

from cpbalance.attention import attention_pairs, heads_per_rank
from cpbalance.cli.attention_arguments import add_attention_arguments, attention_of
from cpbalance.cli.calibration_arguments import (
    add_calibration_argument,
    calibration_facts,
    load_calibration,
)
from cpbalance.costs import cost_model
from cpbalance.stage_schemas import COSTS, PACKS
from cpbalance.tables import iter_row_groups, read_provenance, table_writer

HELP = "cost of every pack on one rank"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    parser.add_argument("--packs", type=Path, required=True, help="file of the pack stage")
    add_attention_arguments(parser)
    parser.add_argument("--cost", required=True, help="cost model")
    add_calibration_argument(parser)
    parser.add_argument("--output", type=Path, required=True)


def run(args: argparse.Namespace) -> None:
    """Write pairs and cost of all packs of all steps."""
    attention = attention_of(args)
    source = read_provenance(args.packs, PACKS)
    calibration = load_calibration(args.calibration, attention)
    model = cost_model(args.cost, attention, source["cp_size"], calibration)
    provenance = {
        "stage": "simulate",
        "attention": args.attention_name,
        "q_heads": attention.q_heads,
        "kv_heads": attention.kv_heads,
        "head_dim": attention.head_dim,
        "causal": attention.causal,
        "cost": model.name,
        "cost_unit": model.unit,
        "source": source,
    }
    q_heads, _ = heads_per_rank(attention, source["cp_size"])
    facts = calibration_facts(args.calibration, q_heads)
    if facts is not None:
        provenance["calibration"] = facts
    with table_writer(args.output, COSTS, provenance) as writer:
        for group in iter_row_groups(args.packs, PACKS):
            step, pack = group["step"].to_numpy(), group["pack"].to_numpy()
            segments = group["segment_tokens"].to_numpy()
            new_pack = (np.diff(pack) != 0) | (np.diff(step) != 0)
            first = np.concatenate([[0], np.flatnonzero(new_pack) + 1])
            pairs = attention_pairs(segments, attention.causal)
            writer.write(
                {
                    "step": step[first],
                    "pack": pack[first],
                    "attention_pairs": np.add.reduceat(pairs, first),
                    "cost": model.fixed + np.add.reduceat(model.segment(segments), first),
                }
            )
