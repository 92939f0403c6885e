"""``cpbalance plot``: draw one figure from tables."""

import argparse
import importlib
from contextlib import ExitStack
from pathlib import Path

from cpbalance.errors import InputError
from cpbalance.figures.style import COLUMN, PAGE, save, use_style
from cpbalance.names import FIGURE_TABLES
from cpbalance.table_schemas import SCHEMAS
from cpbalance.tables import read_table, replacing

HELP = "draw one figure from tables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    parser.add_argument("figure", help=f"one of {', '.join(FIGURE_TABLES)}")
    parser.add_argument("--tables", type=Path, nargs="+", required=True)
    parser.add_argument(
        "--output", type=Path, nargs="+", required=True, help="names ending in .pdf, .png or .csv"
    )
    parser.add_argument(
        "--width", choices=("column", "page"), default="page", help="one column of a paper, or two"
    )


def run(args: argparse.Namespace) -> None:
    """Draw the figure and write it in every format asked for."""
    if args.figure not in FIGURE_TABLES:
        raise InputError(f"figure is {args.figure!r}: use one of {', '.join(FIGURE_TABLES)}")
    for path in args.output:
        if path.suffix not in (".pdf", ".png", ".csv"):
            raise InputError(f"--output {path}: the name must end in .pdf, .png or .csv")
    given = {path.stem: path for path in args.tables}
    missing = [name for name in FIGURE_TABLES[args.figure] if name not in given]
    if missing:
        raise InputError(f"figure {args.figure} needs the table {missing[0]}: add it to --tables")
    tables = {
        name: read_table(given[name], SCHEMAS[name]).to_pandas()
        for name in FIGURE_TABLES[args.figure]
    }
    use_style(COLUMN if args.width == "column" else PAGE)
    figure, frame = importlib.import_module(f"cpbalance.figures.{args.figure}").draw(tables)
    with ExitStack() as stack:
        partial = [stack.enter_context(replacing(path)) for path in args.output]
        save(figure, frame, list(zip(partial, args.output, strict=True)))
