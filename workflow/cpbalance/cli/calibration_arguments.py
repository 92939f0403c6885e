"""The calibration that a cost may stand for, shared by the stages that take a cost."""

import argparse
import json
import logging
from pathlib import Path
from typing import Any

from cpbalance.attention import Attention
from cpbalance.errors import InputError
from cpbalance.kernel_time import KernelTime, check_fits, fitted_model

logger = logging.getLogger("cpbalance")


def add_calibration_argument(parser: argparse.ArgumentParser) -> None:
    """The option ``--calibration``."""
    parser.add_argument(
        "--calibration", type=Path, help="file of the calibrate stage, for cost calibrated:KERNEL"
    )


def load_calibration(path: Path | None, attention: Attention) -> KernelTime | None:
    """The forward model in ``path``, None without one.

    Raises :class:`~cpbalance.errors.InputError` where it is no calibration of this attention.
    """
    if path is None:
        return None
    found = _read(path)
    model = fitted_model(found, str(path))
    check_fits(found, str(path), attention.head_dim, attention.causal)
    return model


def calibration_facts(path: Path | None, q_heads: int) -> dict[str, Any] | None:
    """What a file that follows from a calibration has to say of it; None without one.

    Logs a line where ``q_heads``, the heads of a rank, are other than those that were timed.
    """
    if path is None:
        return None
    found = _read(path)
    forward = found["directions"]["forward"]
    low, high = forward["valid"]["q_heads"]
    if not low <= q_heads <= high:
        logger.info(
            "cpbalance: %s was fitted to %d to %d query heads a call; %d are an extrapolation",
            *(path, low, high, q_heads),
        )
    return {
        **{key: found[key] for key in ("kernel", "devices", "clock")},
        **{key: forward[key] for key in ("coefficients", "tile", "segment_loop", "valid")},
    }


def _read(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"{path}: no such file; make it with cpbalance calibrate")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); calibrate again") from error
