"""A calibration as a JSON document: what was fitted, how well, from what."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cpbalance.calibration import UNITS, Calibration, Calls, predicted_seconds, r_squared, validity
from cpbalance.kernel_time import SCHEMA
from cpbalance.tiles import Tile


def describe(calibration: Calibration, calls: Calls) -> dict[str, Any]:
    """One direction's model, its errors on held-out packs, its range and its rivals."""
    model = calibration.model
    predicted = predicted_seconds(model, calls)
    best_by_tile: dict[Tile, float] = {}
    for candidate in calibration.found:
        error = min(candidate.error, best_by_tile.get(candidate.tile, np.inf))
        best_by_tile[candidate.tile] = error
    return {
        "coefficients": model.coefficients,
        "units": {term: UNITS[term] for term in model.coefficients},
        "tile": [model.tile.queries, model.tile.keys],
        "tile_in_source": (
            None
            if calibration.known is None
            else [calibration.known.queries, calibration.known.keys]
        ),
        "segment_loop": model.segment_loop,
        "held_out": _errors(calibration.held_out),
        "quadratic_held_out": _errors(calibration.quadratic),
        "r_squared": r_squared(calls.seconds, predicted),
        "packs": len(np.unique(calls.pack)),
        "calls": len(calls),
        "valid": validity(calls),
        "rms_error_by_tile": {
            str(tile): error
            for tile, error in sorted(best_by_tile.items(), key=lambda item: item[1])
        },
    }


def _errors(relative: np.ndarray) -> dict[str, float]:
    size = np.abs(relative)
    return {"median": float(np.median(size)), "worst": float(size.max())}


def document(
    kernel: str,
    attention: Mapping[str, Any],
    clock: str,
    devices: list[str],
    directions: Mapping[str, Mapping[str, Any]],
    source: Any,
) -> dict[str, Any]:
    """The whole document of one kernel and attention layer."""
    return {
        "schema": SCHEMA,
        "kernel": kernel,
        "attention": dict(attention),
        "clock": clock,
        "devices": devices,
        "directions": {name: dict(value) for name, value in directions.items()},
        "source": source,
    }
