"""The calibration that a cost may stand for, shared by the stages that take a cost."""

import argparse
import json
from pathlib import Path

from cpbalance.attention import Attention
from cpbalance.errors import InputError
from cpbalance.kernel_time import KernelTime, check_fits, fitted_model


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
    if not path.is_file():
        raise InputError(f"{path}: no such file; make it with cpbalance calibrate")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); calibrate again") from error
    model = fitted_model(found, str(path))
    check_fits(found, str(path), attention.head_dim, attention.causal)
    return model
