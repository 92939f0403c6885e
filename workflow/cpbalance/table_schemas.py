"""Schemas of the result tables, and all schemas by name.

They stand apart from the stage files' schemas so that a new column of a table reruns no timing.
"""

import pyarrow as pa

from cpbalance.stage_schemas import COSTS, LENGTHS, PACKS, TIMINGS
from cpbalance.tables import Schema

CALIBRATION_FIT = Schema(
    "calibration_fit",
    1,
    {
        "kernel": (pa.string(), "name"),
        "attention": (pa.string(), "name"),
        "lengths": (pa.string(), "name of lengths"),
        "direction": (pa.string(), "forward or backward"),
        "cp_size": (pa.int32(), "1"),
        "step": (pa.int32(), "1"),
        "pack": (pa.int32(), "1"),
        "q_heads": (pa.int32(), "query heads timed"),
        "num_tokens": (pa.int64(), "tokens"),
        "num_segments": (pa.int32(), "1"),
        "samples": (pa.int32(), "1"),
        "measured": (pa.float64(), "s, median"),
        "low": (pa.float64(), "s, end of the median's 95% interval"),
        "high": (pa.float64(), "s, end of the median's 95% interval"),
        "predicted": (pa.float64(), "s"),
        "held_out_error": (pa.float64(), "1, predicted over measured less 1, without this pack"),
        "quadratic_error": (pa.float64(), "1, the same of the quadratic model"),
    },
)

CALIBRATION = Schema(
    "calibration",
    1,
    {
        "kernel": (pa.string(), "name"),
        "attention": (pa.string(), "name"),
        "lengths": (pa.string(), "name"),
        "direction": (pa.string(), "forward or backward"),
        "cp_size": (pa.int32(), "1"),
        "steps": (pa.int32(), "1"),
        "packs": (pa.int32(), "1"),
        "measured_imbalance": (pa.float64(), "1"),
        "predicted_imbalance": (pa.float64(), "1"),
        "relative_difference": (pa.float64(), "1, measured over predicted less 1"),
        "measured_mean": (pa.float64(), "s, a pack at the heads timed"),
        "predicted_mean": (pa.float64(), "s, a pack at the heads timed"),
        "median_error": (pa.float64(), "1, of packs held out"),
        "worst_error": (pa.float64(), "1, of packs held out"),
        "quadratic_median_error": (pa.float64(), "1, of packs held out, pairs alone"),
    },
)
_SERIES = {
    "lengths": (pa.string(), "name"),
    "packing": (pa.string(), "name"),
    "attention": (pa.string(), "name"),
    "cost": (pa.string(), "name"),
    "source": (pa.string(), "name"),
}
METRICS = Schema(
    "metrics",
    1,
    {
        **_SERIES,
        "cp_size": (pa.int32(), "1"),
        "metric": (pa.string(), "name"),
        "value": (pa.float64(), "that of the cost, its square for variance, else 1"),
        "low": (pa.float64(), "as value"),
        "high": (pa.float64(), "as value"),
        "steps": (pa.int64(), "1"),
    },
)
COMPARISON = Schema(
    "comparison",
    1,
    {
        **_SERIES,
        "cp_size": (pa.int32(), "1"),
        "metric": (pa.string(), "name"),
        "value": (pa.float64(), "as in metrics"),
        "standard_error": (pa.float64(), "as value"),
        "reference": (pa.string(), "name"),
        "reference_value": (pa.float64(), "as value"),
        "reference_standard_error": (pa.float64(), "as value"),
        "relative_difference": (pa.float64(), "1"),
        "z": (pa.float64(), "1"),
    },
)
SLOPES = Schema(
    "slopes",
    1,
    {
        **_SERIES,
        "metric": (pa.string(), "name"),
        "slope": (pa.float64(), "1"),
        "low": (pa.float64(), "1"),
        "high": (pa.float64(), "1"),
        "expected": (pa.float64(), "1"),
        "degrees": (pa.int32(), "1"),
        "steps": (pa.int64(), "1"),
    },
)
RANK_COSTS = Schema(
    "rank_costs",
    1,
    {
        **_SERIES,
        "cp_size": (pa.int32(), "1"),
        "step": (pa.int32(), "1"),
        "pack": (pa.int32(), "1"),
        "relative_cost": (pa.float64(), "mean cost of this CP degree"),
    },
)
LENGTH_CURVES = Schema(
    "length_curves",
    1,
    {
        "lengths": (pa.string(), "name"),
        "num_tokens": (pa.int64(), "tokens"),
        "documents_at_least": (pa.float64(), "1"),
        "tokens_at_least": (pa.float64(), "1"),
    },
)
ARTIFACT_SETTINGS = Schema(
    "artifact_settings",
    1,
    {
        "kind": (pa.string(), "run, config, machine, software or timing"),
        "item": (pa.string(), "name"),
        "a": (pa.string(), "text, in the first artifact"),
        "b": (pa.string(), "text, in the second artifact"),
    },
)
_SIDES = {
    f"{name}_{side}": (pa.float64(), "as value in metrics")
    for side in "ab"
    for name in ("value", "low", "high")
}
ARTIFACT_METRICS = Schema(
    "artifact_metrics",
    1,
    {
        **{key: value for key, value in _SERIES.items() if key != "source"},
        "cp_size": (pa.int32(), "1"),
        "metric": (pa.string(), "name"),
        "artifact_a": (pa.string(), "name"),
        "artifact_b": (pa.string(), "name"),
        "source_a": (pa.string(), "name"),
        "source_b": (pa.string(), "name"),
        **_SIDES,
        "ratio": (pa.float64(), "1, b over a"),
        "overlap": (pa.bool_(), "whether the intervals overlap"),
    },
)
_SERIES_OF_THEORY = {name: column for name, column in _SERIES.items() if name != "source"}
THEORY = Schema(
    "theory",
    1,
    {
        **_SERIES_OF_THEORY,
        "cp_size": (pa.int32(), "1"),
        "groups": (pa.int32(), "1"),
        "level": (pa.string(), "iid, renewal, moments or distribution"),
        "mean": (pa.float64(), "that of the cost"),
        "variance": (pa.float64(), "square of the cost's"),
        "cv": (pa.float64(), "1"),
        "skewness": (pa.float64(), "1"),
        "expected_max": (pa.float64(), "that of the cost"),
        "expected_min": (pa.float64(), "that of the cost"),
        "imbalance": (pa.float64(), "1"),
        "max_over_mean": (pa.float64(), "1"),
        "max_over_min": (pa.float64(), "1"),
        "waiting_share": (pa.float64(), "1"),
        "neighbour_correlation": (pa.float64(), "1"),
        "relative_error": (pa.float64(), "1, numerical"),
        "note": (pa.string(), "text"),
    },
)
THEORY_DENSITY = Schema(
    "theory_density",
    1,
    {
        **_SERIES_OF_THEORY,
        "cp_size": (pa.int32(), "1"),
        "relative_cost": (pa.float64(), "mean cost of this CP degree"),
        "density": (pa.float64(), "per mean cost"),
    },
)
VALIDATION = Schema(
    "validation",
    1,
    {
        **_SERIES_OF_THEORY,
        "cp_size": (pa.int32(), "1"),
        "level": (pa.string(), "iid, renewal, moments or distribution"),
        "metric": (pa.string(), "name"),
        "predicted": (pa.float64(), "as value in metrics"),
        "simulated": (pa.float64(), "as value in metrics"),
        "standard_error": (pa.float64(), "as value in metrics"),
        "relative_error": (pa.float64(), "1, predicted over simulated less 1"),
        "z": (pa.float64(), "1"),
    },
)
NEIGHBOURS = Schema(
    "neighbours",
    1,
    {
        **_SERIES_OF_THEORY,
        "cp_size": (pa.int32(), "1"),
        "quantity": (pa.string(), "correlation, shuffled_correlation or shuffled_imbalance"),
        "simulated": (pa.float64(), "1"),
        "standard_error": (pa.float64(), "1"),
        "predicted": (pa.float64(), "1"),
    },
)
EXPONENTIAL_NORMAL = Schema(
    "exponential_normal",
    1,
    {
        "normal_cv": (pa.float64(), "1"),
        "pack": (pa.string(), "documents (a fixed number of them) or tokens (a fixed budget)"),
        "exponential": (pa.float64(), "variance per document, mean length⁴"),
        "normal": (pa.float64(), "variance per document, mean length⁴"),
        "ratio": (pa.float64(), "1"),
        "monte_carlo": (pa.float64(), "1, the ratio from simulated packs"),
        "standard_error": (pa.float64(), "1"),
        "z": (pa.float64(), "1"),
    },
)
SCHEMAS = {
    schema.name: schema
    for schema in (
        LENGTHS,
        PACKS,
        COSTS,
        TIMINGS,
        CALIBRATION_FIT,
        CALIBRATION,
        METRICS,
        COMPARISON,
        SLOPES,
        RANK_COSTS,
        LENGTH_CURVES,
        ARTIFACT_SETTINGS,
        ARTIFACT_METRICS,
        THEORY,
        THEORY_DENSITY,
        VALIDATION,
        NEIGHBOURS,
        EXPONENTIAL_NORMAL,
    )
}
