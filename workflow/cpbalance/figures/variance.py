"""Variance and CV of a rank's cost against CP, with fitted slopes and the law of independence.

The law, for independent documents: variance ∝ 1/CP and CV ∝ 1/√CP. It is drawn through the largest
CP degree, where a pack holds most documents.
"""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cpbalance.figures.style import DASHES, MARKERS, cp_axis, main_cost, new_figure, series_label

_LABELS = {"variance": "variance / mean² at CP 1", "cv": "CV"}
_KEYS = ["lengths", "packing", "attention", "cost", "source"]


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """Two panels, variance and CV; one line for every simulated series."""
    metrics = main_cost(tables["metrics"].query("source == 'simulated'")).sort_values(
        "cp_size", kind="stable"
    )
    figure, axes = new_figure(1, 2, height=3.0)
    shown = []
    for panel, metric in zip(axes.flat, _LABELS, strict=True):
        for index, (key, part) in enumerate(metrics.groupby(_KEYS, sort=False)):
            series = part[part["metric"] == metric]
            if metric == "variance":
                # Without unit, variances of different lengths compare.
                mean = part.loc[part["metric"] == "mean", "value"].iloc[0]
                series = series.assign(**{c: series[c] / mean**2 for c in ("value", "low", "high")})
            shown.append(series)
            _line(panel, series, index, _label(key, metrics, tables["slopes"], metric))
        cp_axis(panel, sorted(metrics["cp_size"].unique()))
        panel.set_yscale("log")
        panel.set_ylabel(f"{_LABELS[metric]}, {metrics['cost'].iloc[0]} cost")
        panel.legend(
            title="fitted slope [interval]", alignment="left", fontsize=6, title_fontsize=6
        )
    return figure, pd.concat(shown, ignore_index=True)


def _line(panel: Axes, series: pd.DataFrame, index: int, label: str) -> None:
    colour = sns.color_palette("colorblind")[index % 10]
    x, y = series["cp_size"].to_numpy(float), series["value"].to_numpy(float)
    panel.errorbar(
        x, y, yerr=[y - series["low"], series["high"] - y], label=label, color=colour,
        marker=MARKERS[index % len(MARKERS)], ls=DASHES[index % len(DASHES)],
    )  # fmt: skip
    exponent = -1.0 if series["metric"].iloc[0] == "variance" else -0.5
    law = y[-1] * (x / x[-1]) ** exponent
    panel.plot(x, law, color="0.6", lw=0.7, ls=(0, (1, 1)), zorder=0)
    if index == 0:
        name = "1/CP" if exponent == -1 else "1/√CP"
        panel.annotate(
            name, (np.sqrt(x[0] * x[min(1, len(x) - 1)]), law[0]), color="0.4", fontsize=7
        )


def _label(key: tuple[str, ...], metrics: pd.DataFrame, slopes: pd.DataFrame, metric: str) -> str:
    # All series here are simulated: the source, last, tells none apart.
    name = series_label(key[:-1], _KEYS[:-1], metrics)
    fitted = slopes[(slopes[_KEYS] == key).all(axis=1) & (slopes["metric"] == metric)]
    if fitted.empty:
        return name
    row = fitted.iloc[0]
    return f"{name}: {row['slope']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
