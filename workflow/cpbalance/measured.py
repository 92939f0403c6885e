"""Measured packs as costs beside the simulated ones, and calibrations held against them.

The cost of a measured pack is the median time of one rank of its group, in milliseconds. Where
fewer query heads were timed than a rank has, time is scaled by heads: an extrapolation, and its
cost is called ``time_extrapolated``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cpbalance.kernels.base import BACKWARD
from cpbalance.names import BACKWARD_COST
from cpbalance.table_schemas import CALIBRATION
from cpbalance.timing.plan import Target
from cpbalance.timing.summary import PackTime

CALIBRATION_KEYS = ("kernel", "attention", "lengths", "direction", "cp_size")


def measured_series(
    provenance: Mapping[str, Any], times: Mapping[Target, PackTime]
) -> Iterator[tuple[dict[str, str], int, NDArray[np.float64]]]:
    """Series, CP degree and milliseconds (steps, packs), per direction and CP degree."""
    for direction in provenance["directions"]:
        for cp_size in sorted({t.cp_size for t in times}):
            chosen = {
                t: v for t, v in times.items() if (t.cp_size, t.direction) == (cp_size, direction)
            }
            steps = len({t.step for t in chosen})
            values = np.array([1e3 * chosen[target].rank_seconds for target in sorted(chosen)])
            timed_all = all(v.q_heads == v.rank_q_heads for v in chosen.values())
            cost = "time" if timed_all else "time_extrapolated"
            series = {
                "lengths": provenance["source"]["source"]["name"],
                "packing": provenance["source"]["packing"],
                "attention": provenance["attention"]["name"],
                "cost": cost + (BACKWARD_COST if direction == BACKWARD else ""),
                "source": f"measured:{provenance['kernel']['name']}",
            }
            yield series, cp_size, values.reshape(steps, -1)


def calibration_table(fits: pd.DataFrame) -> pd.DataFrame:
    """Imbalance and errors per CP degree: measured, and predicted by the calibration.

    ``fits`` has the columns of the calibration_fit table. Both imbalances are of the same packs at
    the heads that were timed.
    """
    rows = []
    for key, group in fits.groupby(list(CALIBRATION_KEYS), sort=True):
        measured, predicted = (_imbalance(group, name) for name in ("measured", "predicted"))
        held_out = group["held_out_error"].abs()
        rows.append(
            {
                **dict(zip(CALIBRATION_KEYS, key, strict=True)),
                "steps": group["step"].nunique(),
                "packs": len(group),
                "measured_imbalance": measured,
                "predicted_imbalance": predicted,
                "relative_difference": measured / predicted - 1 if predicted > 0 else np.nan,
                "measured_mean": group["measured"].mean(),
                "predicted_mean": group["predicted"].mean(),
                "median_error": held_out.median(),
                "worst_error": held_out.max(),
                "quadratic_median_error": group["quadratic_error"].abs().median(),
            }
        )
    return pd.DataFrame(rows, columns=list(CALIBRATION.columns))


def _imbalance(group: pd.DataFrame, column: str) -> float:
    """(max − min)/mean over the packs of a step, mean over steps."""
    steps = group.groupby("step")[column]
    return float(((steps.max() - steps.min()) / steps.mean()).mean())
