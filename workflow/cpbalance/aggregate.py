"""From costs of packs to tidy tables: metrics, comparison with published values, slopes, samples.

Every function returns a pandas frame whose columns are those of the schema of the same name in
:mod:`cpbalance.tables`.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cpbalance.metrics import (
    METRICS,
    StepStatistics,
    interval,
    log_log_slope,
    metric_values,
    resampled_metrics,
)
from cpbalance.names import BACKWARD_COST, CALIBRATED
from cpbalance.presets import PRESETS

# What names one series of costs over CP degrees.
SERIES = ("lengths", "packing", "attention", "cost", "source")
EXPECTED_SLOPES = {"variance": -1.0, "cv": -0.5}


@dataclass(frozen=True)
class Costs:
    """Step statistics of one series at one CP degree, and the bootstrap resamples of its metrics.

    ``resamples`` is (resamples, METRICS), None for a single step.
    """

    series: Mapping[str, str]
    cp_size: int
    statistics: StepStatistics
    resamples: NDArray[np.float64] | None

    @classmethod
    def from_statistics(
        cls, series: Mapping[str, str], cp_size: int, statistics: StepStatistics, resamples: int
    ) -> "Costs":
        """Resample the metrics once, for all tables."""
        return cls(series, cp_size, statistics, resampled_metrics(statistics, resamples))

    def standard_error(self, metric: str) -> float:
        """Bootstrap standard error of a metric; NaN for a single step."""
        if self.resamples is None:
            return float("nan")
        return float(self.resamples[:, METRICS.index(metric)].std(ddof=1))


def metrics_table(costs: Iterable[Costs], confidence: float) -> pd.DataFrame:
    """One row per series, CP degree and metric, with its interval."""
    rows: list[dict[str, Any]] = []
    for item in costs:
        for index, (metric, value) in enumerate(metric_values(item.statistics).items()):
            low, high = float("nan"), float("nan")
            if item.resamples is not None:
                low, high = interval(item.resamples[:, index], confidence)
            rows.append(
                {
                    **item.series,
                    "cp_size": item.cp_size,
                    "metric": metric,
                    "value": value,
                    "low": low,
                    "high": high,
                    "steps": item.statistics.steps,
                }
            )
    return pd.DataFrame(rows)


def slopes_table(costs: Sequence[Costs], confidence: float) -> pd.DataFrame:
    """Fitted slope of log variance and log CV against log CP, one row per series and metric.

    Series with a single CP degree, or without variance at some degree, have no slope and no row.
    """
    rows: list[dict[str, Any]] = []
    for key, items in _by_series(costs).items():
        cp_sizes = np.array([item.cp_size for item in items], dtype=np.float64)
        for metric, expected in EXPECTED_SLOPES.items():
            index = METRICS.index(metric)
            values = np.array([metric_values(item.statistics)[metric] for item in items])
            if len(items) < 2 or not (values > 0).all():
                continue
            low, high = float("nan"), float("nan")
            steps = {item.statistics.steps for item in items}
            resamples = [item.resamples for item in items]
            if len(steps) == 1 and all(part is not None for part in resamples):
                together = np.stack([part[:, index] for part in resamples], axis=1)
                if (together > 0).all():
                    low, high = interval(log_log_slope(cp_sizes, together), confidence)
            rows.append(
                {
                    **dict(zip(SERIES, key, strict=True)),
                    "metric": metric,
                    "slope": float(log_log_slope(cp_sizes, values)),
                    "low": low,
                    "high": high,
                    "expected": expected,
                    "degrees": len(items),
                    "steps": max(steps),
                }
            )
    columns = [*SERIES, "metric", "slope", "low", "high", "expected", "degrees", "steps"]
    return pd.DataFrame(rows, columns=columns)


def _by_series(costs: Iterable[Costs]) -> dict[tuple[str, ...], list[Costs]]:
    series: dict[tuple[str, ...], list[Costs]] = {}
    for item in sorted(costs, key=lambda item: item.cp_size):
        series.setdefault(tuple(item.series[name] for name in SERIES), []).append(item)
    return series


def comparison_table(
    costs: Iterable[Costs],
    published: pd.DataFrame,
    references: Mapping[str, str],
    articles_layers: Container[str],
) -> pd.DataFrame:
    """Values beside published ones, with z-scores.

    ``references`` maps a name of lengths to the published distribution it repeats. A source without
    standard errors gets ours, scaled to its number of steps: z then asks whether its run could be
    a draw from our distribution. The quadratic model, which knows no layer, is compared with
    everything, so that its distance to the H100 is seen; forward times, measured or modelled, with
    the article's times alone, and only for ``articles_layers``, the layers that equal its own.
    """
    rows: list[dict[str, Any]] = []
    for item in costs:
        timed = _is_forward_time(item.series)
        if timed and item.series["attention"] not in articles_layers:
            continue
        if not timed and item.series["cost"] not in ("quadratic", "full_pairs"):
            continue
        known = published[
            (published["distribution"] == references.get(item.series["lengths"]))
            & (published["cp_size"] == item.cp_size)
        ]
        if timed:
            known = known[known["reference"] == "article-h100"]
        values = metric_values(item.statistics)
        for row in known.itertuples():
            error = item.standard_error(row.metric)
            other = row.standard_error
            if np.isnan(other):
                other = error * (item.statistics.steps / row.steps) ** 0.5
            difference = values[row.metric] - row.value
            rows.append(
                {
                    **item.series,
                    "cp_size": item.cp_size,
                    "metric": row.metric,
                    "value": values[row.metric],
                    "standard_error": error,
                    "reference": row.reference,
                    "reference_value": row.value,
                    "reference_standard_error": other,
                    "relative_difference": difference / row.value,
                    "z": difference / float(np.hypot(error, other)),
                }
            )
    columns = [*SERIES, "cp_size", "metric", "value", "standard_error", "reference"]
    columns += ["reference_value", "reference_standard_error", "relative_difference", "z"]
    return pd.DataFrame(rows, columns=columns)


def _is_forward_time(series: Mapping[str, str]) -> bool:
    measured = series["source"].startswith("measured:")
    modelled = series["cost"] in PRESETS or series["cost"].startswith(CALIBRATED)
    return modelled or (measured and not series["cost"].endswith(BACKWARD_COST))


def published_rows(
    published: pd.DataFrame,
    references: Mapping[str, str],
    packing: str,
    attention: str,
    confidence: float,
) -> pd.DataFrame:
    """The published values as rows of the metrics table; intervals are of a normal law."""
    parts = []
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    for lengths, distribution in references.items():
        rows = published[published["distribution"] == distribution]
        spread = quantile * rows["standard_error"]
        parts.append(
            pd.DataFrame(
                {
                    "lengths": lengths,
                    "packing": packing,
                    "attention": attention,
                    "cost": np.where(rows["reference"] == "article-h100", "time", "quadratic"),
                    "source": "published:" + rows["reference"],
                    "cp_size": rows["cp_size"],
                    "metric": rows["metric"],
                    "value": rows["value"],
                    "low": rows["value"] - spread,
                    "high": rows["value"] + spread,
                    "steps": rows["steps"],
                }
            )
        )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def length_curves(name: str, num_tokens: NDArray[np.int64], points: int = 400) -> pd.DataFrame:
    """Shares of documents and of tokens in documents of at least l tokens, l on a log grid."""
    ordered = np.sort(num_tokens)
    grid = np.unique(np.geomspace(ordered[0], ordered[-1], points).round().astype(np.int64))
    below = np.searchsorted(ordered, grid)
    tokens = np.concatenate([[0], np.cumsum(ordered)])
    return pd.DataFrame(
        {
            "lengths": name,
            "num_tokens": grid,
            "documents_at_least": 1 - below / len(ordered),
            "tokens_at_least": 1 - tokens[below] / tokens[-1],
        }
    )
