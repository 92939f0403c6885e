"""``cpbalance theory``: predict the packs of one source of lengths, without simulating."""

import argparse
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np

from cpbalance.attention import Attention, heads_per_rank
from cpbalance.cli.calibration_arguments import calibration_facts, load_calibration
from cpbalance.cli.json_arguments import json_object
from cpbalance.cli.lengths_arguments import add_lengths_arguments, load_population, parse_lengths
from cpbalance.costs import CostModel, cost_model
from cpbalance.errors import InputError
from cpbalance.names import THEORY_PACKING
from cpbalance.table_schemas import THEORY, THEORY_DENSITY
from cpbalance.tables import write_table
from cpbalance.theory.predict import Prediction, SegmentCost, predict
from cpbalance.theory.source import length_model, order_note

logger = logging.getLogger("cpbalance")

HELP = "predict what packs cost and how unevenly, from the distribution of lengths"

# A density is written where all but these shares of packs lie, finer below the knee.
TAIL, KNEE = 1e-6, 0.995
BULK_POINTS, TAIL_POINTS = 256, 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    add_lengths_arguments(parser)
    parser.add_argument("--world-size", type=int, required=True)
    parser.add_argument("--tp-size", type=int, default=1)
    parser.add_argument("--cp-sizes", type=int, nargs="+", required=True)
    parser.add_argument("--tokens-per-gpu", type=int, required=True)
    parser.add_argument(
        "--attentions",
        required=True,
        metavar="JSON",
        help="name -> q_heads, kv_heads, head_dim, causal",
    )
    parser.add_argument(
        "--calibrations",
        default="{}",
        metavar="JSON",
        help="attention/cost -> file of the calibrate stage, for costs calibrated:KERNEL",
    )
    parser.add_argument("--costs", nargs="+", required=True, help="cost models")
    parser.add_argument("--output", type=Path, required=True, help="table of predictions")
    parser.add_argument("--density", type=Path, help="table of the predicted densities")


def run(args: argparse.Namespace) -> None:
    """Write predictions, and densities where asked for, of all layers, costs and CP degrees."""
    groups = _groups(args)
    source = parse_lengths(args.lengths).with_mean(args.tokens_per_gpu)
    population, _ = load_population(source, args.digest)
    tokens_per_step = args.world_size // args.tp_size * args.tokens_per_gpu
    model = length_model(source, tokens_per_step, population)
    rows: list[dict[str, Any]] = []
    densities: list[dict[str, Any]] = []
    calibrations = json_object("--calibrations", args.calibrations)
    facts: dict[str, Any] = {}
    for name, shape in _attentions(args.attentions).items():
        for cost in args.costs:
            series = {
                "lengths": args.name,
                "packing": THEORY_PACKING,
                "attention": name,
                "cost": cost,
            }
            given = calibrations.get(f"{name}/{cost}")
            path = Path(given) if given else None
            calibration = load_calibration(path, shape)
            costs = {cp_size: cost_model(cost, shape, cp_size, calibration) for cp_size in groups}
            for cp_size in groups if path else ():
                q_heads, _ = heads_per_rank(shape, cp_size)
                facts[f"{name}/{cost}"] = calibration_facts(path, q_heads)
            for item in predict(model, _as_pairs(costs), args.tokens_per_gpu, groups):
                rows.append(series | _row(item, order_note(source)))
                if item.density is not None:
                    densities += _density(series, item)
    provenance = {
        "stage": "theory",
        "name": args.name,
        "lengths": json.loads(args.lengths),
        "world_size": args.world_size,
        "tp_size": args.tp_size,
        "tokens_per_gpu": args.tokens_per_gpu,
        "attentions": json.loads(args.attentions),
        "costs": args.costs,
        "calibrations": facts,
    }
    _write(args.output, THEORY, rows, provenance)
    if args.density is not None:
        _write(args.density, THEORY_DENSITY, densities, provenance)
    worst = max(row["relative_error"] for row in rows)
    logger.info("%s: %d predictions, numerical errors up to %.1e", args.name, len(rows), worst)


def _groups(args: argparse.Namespace) -> dict[int, int]:
    """CP degree -> packs a step."""
    if args.tokens_per_gpu < 1:
        raise InputError(f"--tokens-per-gpu is {args.tokens_per_gpu}: give at least 1")
    ranks, rest = divmod(args.world_size, args.tp_size) if args.tp_size > 0 else (0, 1)
    if rest or ranks < 1:
        raise InputError(
            f"--tp-size is {args.tp_size}: it must divide --world-size ({args.world_size})"
        )
    for cp_size in args.cp_sizes:
        if cp_size < 1 or ranks % cp_size:
            raise InputError(
                f"--cp-sizes has {cp_size}: it must divide world_size / tp_size ({ranks})"
            )
    return {cp_size: ranks // cp_size for cp_size in args.cp_sizes}


def _attentions(text: str) -> dict[str, Attention]:
    try:
        return {n: Attention(**shape) for n, shape in json_object("--attentions", text).items()}
    except TypeError as error:
        raise InputError(
            f"--attentions {text[:80]}: {error}; give name -> q_heads, kv_heads, head_dim, causal"
        ) from None


def _as_pairs(models: dict[int, CostModel]) -> dict[int, tuple[SegmentCost, float]]:
    return {cp_size: (model.segment, model.fixed) for cp_size, model in models.items()}


def _row(item: Prediction, order: str) -> dict[str, Any]:
    moments, extremes = item.moments, item.extremes
    return {
        "cp_size": item.cp_size,
        "groups": item.groups,
        "level": item.level,
        "mean": moments.mean,
        "variance": moments.variance,
        "cv": moments.cv,
        "skewness": moments.skewness,
        "expected_max": extremes.expected_max,
        "expected_min": extremes.expected_min,
        "imbalance": extremes.imbalance,
        "max_over_mean": extremes.max_over_mean,
        "max_over_min": extremes.max_over_min,
        "waiting_share": extremes.waiting_share,
        "neighbour_correlation": item.neighbour_correlation,
        "relative_error": item.relative_error,
        "note": "; ".join(filter(None, (item.note, order))),
    }


def _density(series: dict[str, str], item: Prediction) -> list[dict[str, Any]]:
    """The law as a density over cost/mean, in equal steps up to the tail and coarser ones in it."""
    value, mass = item.density
    mean = float(mass @ value)
    if value.size < 2:
        return []
    middle = (value[1:] + value[:-1]) / 2
    below = np.cumsum(mass)[:-1]
    low, knee, high = (float(middle[min(int(np.searchsorted(below, q)), middle.size - 1)])
                       for q in (TAIL, KNEE, 1 - TAIL))  # fmt: skip
    edges = np.concatenate(
        [np.linspace(low, knee, BULK_POINTS + 1), np.linspace(knee, high, TAIL_POINTS + 1)[1:]]
    )
    width = np.diff(edges)
    inside = width > 0
    density = np.diff(np.interp(edges, middle, below))[inside] / width[inside] * mean
    centre = ((edges[1:] + edges[:-1]) / 2)[inside] / mean
    return [
        series | {"cp_size": item.cp_size, "relative_cost": x, "density": y}
        for x, y in zip(centre.tolist(), density.tolist(), strict=True)
    ]


def _write(path: Path, schema: Any, rows: list[dict[str, Any]], provenance: dict) -> None:
    # NaN stands for a number that does not exist, so it is null in the file.
    columns = {
        name: [None if row[name] != row[name] else row[name] for row in rows]
        for name in schema.columns
    }
    write_table(path, schema, columns, provenance)
