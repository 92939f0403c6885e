"""``cpbalance aggregate``: tidy tables from the costs of all packs."""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from cpbalance.aggregate import (
    Costs,
    comparison_table,
    length_curves,
    metrics_table,
    published_rows,
    slopes_table,
)
from cpbalance.aggregate_theory import neighbours_table, theory_rows, validation_table
from cpbalance.cli.json_arguments import json_object
from cpbalance.errors import InputError
from cpbalance.headline import headline
from cpbalance.measured import calibration_table, measured_series
from cpbalance.metrics import step_statistics
from cpbalance.names import THEORY_PACKING
from cpbalance.published import DISTRIBUTIONS, LAYER, published_values
from cpbalance.stage_schemas import COSTS, LENGTHS, TIMINGS
from cpbalance.table_schemas import (
    CALIBRATION,
    CALIBRATION_FIT,
    COMPARISON,
    LENGTH_CURVES,
    METRICS,
    NEIGHBOURS,
    RANK_COSTS,
    SLOPES,
    THEORY,
    THEORY_DENSITY,
    VALIDATION,
)
from cpbalance.tables import (
    Schema,
    iter_row_groups,
    read_provenance,
    read_table,
    replacing,
    write_frame,
)
from cpbalance.timing.summary import pack_times

HELP = "metrics with intervals, comparisons and slopes, as tidy tables"

# What the distribution figures draw: no more packs than a reader's eye, and their file, can hold.
SAMPLED_STEPS = 100
SAMPLED_DOCUMENTS = 1_000_000
# Row groups whose packs are compared with their neighbours.
NEIGHBOUR_BLOCKS = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    parser.add_argument("--costs", type=Path, nargs="+", required=True)
    parser.add_argument("--lengths", type=Path, nargs="+", required=True)
    parser.add_argument("--timings", type=Path, nargs="*", default=[], help="measured kernels")
    parser.add_argument("--fits", type=Path, nargs="*", default=[], help="tables of calibrations")
    parser.add_argument(
        "--theory", type=Path, nargs="*", default=[], help="predictions of the theory stage"
    )
    parser.add_argument(
        "--densities", type=Path, nargs="*", default=[], help="densities of the theory stage"
    )
    parser.add_argument(
        "--references",
        default="{}",
        metavar="JSON",
        help="name of lengths -> published distribution that it repeats",
    )
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--bootstrap", type=int, default=2000)
    parser.add_argument("--output-dir", type=Path, required=True)


def _blocks(path: Path, dp_size: int) -> Iterator[np.ndarray]:
    for group in iter_row_groups(path, COSTS):
        yield group["cost"].to_numpy().reshape(-1, dp_size)


def _series(provenance: dict) -> dict[str, str]:
    return {
        "lengths": provenance["source"]["source"]["name"],
        "packing": provenance["source"]["packing"],
        "attention": provenance["attention"],
        "cost": provenance["cost"],
        "source": "simulated",
    }


def _rank_costs(path: Path, item: Costs, mean: float) -> pd.DataFrame:
    parts = []
    for group in iter_row_groups(path, COSTS):
        frame = group.to_pandas()
        frame = frame[frame["step"] < SAMPLED_STEPS]
        parts.append(frame)
        if frame.empty or frame["step"].max() == SAMPLED_STEPS - 1:
            break
    frame = pd.concat(parts, ignore_index=True)
    return frame[["step", "pack"]].assign(
        **item.series, cp_size=item.cp_size, relative_cost=(frame["cost"] / mean).round(6)
    )


def _length_curves(path: Path) -> pd.DataFrame:
    parts, held = [], 0
    for group in iter_row_groups(path, LENGTHS):
        parts.append(group["num_tokens"].to_numpy())
        held += len(parts[-1])
        if held >= SAMPLED_DOCUMENTS:
            break
    return length_curves(read_provenance(path, LENGTHS)["name"], np.concatenate(parts))


def _together(paths: list[Path], schema: Schema) -> pd.DataFrame:
    return _stacked([read_table(path, schema).to_pandas() for path in paths], schema)


def _stacked(frames: list[pd.DataFrame], schema: Schema) -> pd.DataFrame:
    filled = [frame for frame in frames if len(frame)]
    empty = pd.DataFrame({name: [] for name in schema.columns})
    return pd.concat(filled, ignore_index=True) if filled else empty


def run(args: argparse.Namespace) -> None:
    """Write all tables, as Parquet and CSV, and the headline as text."""
    references = json_object("--references", args.references)
    for name, distribution in references.items():
        if distribution not in DISTRIBUTIONS:
            raise InputError(
                f"reference of {name} is {distribution!r}: use one of {', '.join(DISTRIBUTIONS)}"
            )
    theory = _together(args.theory, THEORY)
    costs, ranks, neighbours = [], [], []
    articles_layers: set[str] = set()
    for path in args.costs:
        provenance = read_provenance(path, COSTS)
        pack = provenance["source"]
        if LAYER.items() <= provenance.items():
            articles_layers.add(provenance["attention"])
        statistics = step_statistics(_blocks(path, pack["dp_size"]))
        item = Costs.from_statistics(
            _series(provenance), pack["cp_size"], statistics, args.bootstrap
        )
        costs.append(item)
        mean = statistics.shift + float(statistics.per_step[:, 0].mean())
        ranks.append(_rank_costs(path, item, mean))
        if args.theory and item.series["packing"] == THEORY_PACKING:
            blocks = islice(_blocks(path, pack["dp_size"]), NEIGHBOUR_BLOCKS)
            neighbours.append(
                neighbours_table(item.series, item.cp_size, np.concatenate(list(blocks)), theory)
            )
    for path in args.timings:
        times = pack_times(read_table(path, TIMINGS))
        for series, cp_size, cost in measured_series(read_provenance(path, TIMINGS), times):
            statistics = step_statistics([cost])
            costs.append(Costs.from_statistics(series, cp_size, statistics, args.bootstrap))
    empty = CALIBRATION_FIT.arrow({}).empty_table()
    fits = pa.concat_tables(
        [empty, *(read_table(p, CALIBRATION_FIT) for p in args.fits)]
    ).to_pandas()
    published = published_values()
    first = costs[0].series
    metrics = pd.concat(
        [
            metrics_table(costs, args.confidence),
            theory_rows(theory),
            published_rows(
                published, references, first["packing"], first["attention"], args.confidence
            ),
        ],
        ignore_index=True,
    )
    metrics["steps"] = metrics["steps"].astype("Int64")
    made = {"stage": "aggregate", "confidence": args.confidence, "bootstrap": args.bootstrap}
    tables = [
        (METRICS, metrics),
        (COMPARISON, comparison_table(costs, published, references, articles_layers)),
        (SLOPES, slopes_table(costs, args.confidence)),
        (RANK_COSTS, pd.concat(ranks, ignore_index=True)),
        (CALIBRATION_FIT, fits),
        (CALIBRATION, calibration_table(fits)),
        (LENGTH_CURVES, pd.concat(map(_length_curves, args.lengths), ignore_index=True)),
    ]
    if args.theory:
        tables += [
            (THEORY, theory),
            (THEORY_DENSITY, _together(args.densities, THEORY_DENSITY)),
            (VALIDATION, validation_table(costs, theory)),
            (NEIGHBOURS, _stacked(neighbours, NEIGHBOURS)),
        ]
    for schema, frame in tables:
        write_frame(args.output_dir / f"{schema.name}.parquet", schema, frame, made)
    text = headline(
        metrics, f"Tables: {args.output_dir}/   Figures: {args.output_dir.parent}/figures/"
    )
    with replacing(args.output_dir / "headline.txt") as partial:
        partial.write_text(text, encoding="utf-8")
