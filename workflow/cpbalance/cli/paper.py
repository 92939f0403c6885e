"""``cpbalance paper``: LaTeX tables and a file of macros, from the tables of a run."""

import argparse
from pathlib import Path

from cpbalance import latex
from cpbalance.errors import InputError
from cpbalance.headline import column_headings, with_direction
from cpbalance.table_schemas import SCHEMAS
from cpbalance.tables import read_table, replacing

HELP = "LaTeX tables and numbers from tables"

TABLES = ("metrics", "slopes", "comparison")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("--tables", type=Path, nargs="+", required=True)
    parser.add_argument("--output-dir", type=Path, required=True)


def run(args: argparse.Namespace) -> None:
    """Write numbers.tex, and a .tex file for each table of a paper."""
    given = {path.stem: path for path in args.tables}
    missing = [name for name in TABLES if name not in given]
    if missing:
        raise InputError(f"the table {missing[0]} is needed: add it to --tables")
    frames = {name: read_table(given[name], SCHEMAS[name]).to_pandas() for name in TABLES}
    metrics, slopes, comparison = frames["metrics"], frames["slopes"], frames["comparison"]
    named = with_direction(metrics)
    texts = {
        "numbers": latex.macros(metrics, slopes),
        "imbalance": latex.imbalance_table(named, column_headings(named)),
        "exponents": latex.slopes_table(slopes),
        "published": latex.comparison_table(comparison),
    }
    for name, text in texts.items():
        with replacing(args.output_dir / f"{name}.tex") as partial:
            partial.write_text(text, encoding="utf-8")
