"""Theory beside simulation: its rows in the metrics table, its errors, and what neighbours share.

Every function returns a pandas frame whose columns are those of the schema of the same name in
:mod:`cpbalance.tables`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cpbalance.aggregate import Costs
from cpbalance.metrics import METRICS, metric_values
from cpbalance.names import THEORY_LEVELS
from cpbalance.streams import step_generator

# What theory is about: a series without its source.
THEORY_SERIES = ("lengths", "packing", "attention", "cost")
# Levels whose rows join the metrics table; "moments" is a part of "distribution".
SOURCES = ("iid", "renewal", "distribution")
_BATCHES = 20


def theory_rows(theory: pd.DataFrame) -> pd.DataFrame:
    """Predictions as rows of the metrics table, without intervals; but for null values."""
    chosen = theory[theory["level"].isin(SOURCES)]
    rows = chosen.melt([*THEORY_SERIES, "cp_size", "level"], list(METRICS), "metric", "value")
    rows = rows.dropna(subset="value")
    rows = rows.assign(source="theory:" + rows["level"], low=np.nan, high=np.nan, steps=pd.NA)
    order = rows["metric"].map(METRICS.index)
    return rows.assign(order=order).sort_values(
        [*THEORY_SERIES, "source", "cp_size", "order"], kind="stable", ignore_index=True
    ).drop(columns=["order", "level"])  # fmt: skip


def validation_table(costs: Iterable[Costs], theory: pd.DataFrame) -> pd.DataFrame:
    """Predicted against simulated, one row per series, CP degree, level and metric; no measured."""
    known = theory.set_index([*THEORY_SERIES, "cp_size", "level"])
    rows: list[dict[str, Any]] = []
    for item in costs:
        if item.series["source"] != "simulated":
            continue
        series = {name: item.series[name] for name in THEORY_SERIES}
        simulated = metric_values(item.statistics)
        for level in THEORY_LEVELS:
            key = (*series.values(), item.cp_size, level)
            if key not in known.index:
                continue
            for metric in METRICS:
                predicted, value = float(known.loc[key, metric]), simulated[metric]
                if np.isnan(predicted):
                    continue
                error = item.standard_error(metric)
                rows.append(
                    {
                        **series,
                        "cp_size": item.cp_size,
                        "level": level,
                        "metric": metric,
                        "predicted": predicted,
                        "simulated": value,
                        "standard_error": error,
                        "relative_error": predicted / value - 1 if value else np.nan,
                        "z": (predicted - value) / error if error else np.nan,
                    }
                )
    columns = [*THEORY_SERIES, "cp_size", "level", "metric", "predicted", "simulated"]
    return pd.DataFrame(rows, columns=[*columns, "standard_error", "relative_error", "z"])


def neighbours_table(
    series: Mapping[str, str], cp_size: int, cost: NDArray[np.float64], theory: pd.DataFrame
) -> pd.DataFrame:
    """Correlation of neighbouring packs, and what shuffling packs over steps makes of a step.

    ``cost``: (steps, groups). The first pack of a step, which starts unlike the others, is left
    out of the correlation. Shuffling takes the packs of all steps and deals them out anew, so that
    neighbours of the stream end up in different steps; within a step the order of its packs
    changes neither its slowest nor its fastest. No rows for under three groups or two steps.
    """
    steps, groups = cost.shape
    if steps < 2 or groups < 3:
        return pd.DataFrame()
    shuffled = step_generator(0, "shuffle", cp_size).permutation(cost.ravel()).reshape(cost.shape)
    spread = np.ptp(shuffled, axis=1) / shuffled.mean(axis=1)
    row = theory[
        (theory["level"] == "distribution")
        & (theory["cp_size"] == cp_size)
        & (theory[list(THEORY_SERIES)] == [series[name] for name in THEORY_SERIES]).all(axis=1)
    ]
    correlation, imbalance = (
        (float(row[name].iloc[0]) if len(row) else np.nan)
        for name in ("neighbour_correlation", "imbalance")
    )
    values = {
        "correlation": (*_neighbour_correlation(cost[:, 1:]), correlation),
        "shuffled_correlation": (*_neighbour_correlation(shuffled[:, 1:]), 0.0),
        "shuffled_imbalance": (spread.mean(), spread.std(ddof=1) / steps**0.5, imbalance),
    }
    return pd.DataFrame(
        [
            {
                **{name: series[name] for name in THEORY_SERIES},
                "cp_size": cp_size,
                "quantity": quantity,
                "simulated": simulated,
                "standard_error": error,
                "predicted": predicted,
            }
            for quantity, (simulated, error, predicted) in values.items()
        ]
    )


def _neighbour_correlation(cost: NDArray[np.float64]) -> tuple[float, float]:
    """Correlation of neighbouring columns and its jackknife error over batches of steps."""
    # Centred once for all: the mean of all packs is known far better than a product of two.
    centred = cost / cost.mean() - 1
    sums = np.stack([(centred**2).mean(axis=1), (centred[:, 1:] * centred[:, :-1]).mean(axis=1)])
    parts = np.array_split(np.arange(len(cost)), min(_BATCHES, len(cost)))
    total = sums.sum(axis=1)
    if not total[0]:
        return float("nan"), float("nan")
    left_out = np.array([total - sums[:, part].sum(axis=1) for part in parts])
    left_out = left_out[:, 1] / left_out[:, 0]
    share = (len(parts) - 1) / len(parts)
    return float(total[1] / total[0]), float(
        np.sqrt(share * ((left_out - left_out.mean()) ** 2).sum())
    )
