"""``cpbalance families``: exponential against normal lengths, formula and Monte-Carlo check."""

import argparse
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from cpbalance.table_schemas import EXPONENTIAL_NORMAL
from cpbalance.tables import write_frame
from cpbalance.theory.families import compare

HELP = "compare the variance of exponential and normal lengths, by formula and Monte Carlo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    parser.add_argument(
        "--normal-cvs", type=float, nargs="+", required=True, help="σ/μ of the normal lengths"
    )
    parser.add_argument("--packs", type=int, required=True, help="simulated packs of the check")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True, help=".parquet; .csv comes beside")


def run(args: argparse.Namespace) -> None:
    """Write the comparison."""
    rows = compare(args.normal_cvs, args.packs, args.seed)
    frame = pd.DataFrame([asdict(row) | {"z": row.z} for row in rows])
    made = {"stage": "families", "packs": args.packs, "seed": args.seed}
    write_frame(args.output, EXPONENTIAL_NORMAL, frame, made)
