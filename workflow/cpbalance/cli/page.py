"""``cpbalance page``: tables as HTML pages that can be searched and sorted."""

import argparse
from pathlib import Path

from cpbalance.errors import InputError
from cpbalance.pages import page
from cpbalance.table_schemas import SCHEMAS
from cpbalance.tables import read_table, replacing

HELP = "show tables as searchable HTML pages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument(
        "tables", type=Path, nargs="+", help="Parquet files named after their schema"
    )
    parser.add_argument("--output-dir", type=Path, required=True)


def run(args: argparse.Namespace) -> None:
    """Write a page of the same name for every table."""
    for path in args.tables:
        if path.stem not in SCHEMAS:
            raise InputError(f"{path}: no table has that name; use one of {', '.join(SCHEMAS)}")
    for path in args.tables:
        schema = SCHEMAS[path.stem]
        frame = read_table(path, schema).to_pandas()
        units = {column: unit for column, (_, unit) in schema.columns.items()}
        with replacing(args.output_dir / f"{path.stem}.html") as partial:
            partial.write_text(page(frame, path.stem, units), encoding="utf-8")
