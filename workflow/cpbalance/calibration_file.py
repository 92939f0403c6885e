"""A calibration as a JSON document, and back: what was fitted, how well, from what."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cpbalance.calibration import UNITS, Calibration, Calls, Model, r_squared, validity
from cpbalance.errors import InputError
from cpbalance.tiles import Tile

SCHEMA = "calibration/1"


def describe(calibration: Calibration, calls: Calls) -> dict[str, Any]:
    """One direction's model, its errors on held-out packs, its range and its rivals."""
    model = calibration.model
    predicted = model.predict(calls)
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


def model_of(found: Any, where: str, direction: str = "forward") -> Model:
    """The fitted model of a document; ``where`` names it in errors.

    Raises :class:`~cpbalance.errors.InputError` for another schema or a direction not fitted.
    """
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(f"{where}: is no {SCHEMA} document; make it with cpbalance calibrate")
    if direction not in found["directions"]:
        raise InputError(
            f"{where}: has no {direction} model, only {', '.join(found['directions'])}; time that "
            f"direction and calibrate again"
        )
    fitted = found["directions"][direction]
    return Model(dict(fitted["coefficients"]), Tile(*fitted["tile"]), fitted["segment_loop"])
