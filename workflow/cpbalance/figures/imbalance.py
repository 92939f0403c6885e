"""Imbalance against CP: simulated with its interval, predicted, measured and published values."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cpbalance.figures.style import below, cp_axis, new_figure, panel_rows, row_title

_PUBLISHED = {
    "published:article-model": ("article, quadratic model", "x"),
    "published:article-h100": ("article, FA3 on H100, 2 steps", "+"),
}


def _line(axes: Axes, rows: pd.DataFrame, label: str, **look: object) -> None:
    axes.plot(rows["cp_size"], rows["value"], label=label, **look)
    axes.fill_between(
        rows["cp_size"], rows["low"], rows["high"], color=look["color"], alpha=0.25, linewidth=0
    )


def _steps(rows: pd.DataFrame) -> str:
    steps = rows["steps"].max()
    return "1 step" if steps == 1 else f"{steps} steps"


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    colours = sns.color_palette("colorblind")
    for index, (cost, part) in enumerate(rows[rows["source"] == "simulated"].groupby("cost")):
        _line(
            axes,
            part,
            f"simulated, {cost}",
            color=colours[0],
            marker="o",
            ls=("-", "--", ":")[index],
        )
    for source, part in rows.groupby("source"):
        spread = [part["value"] - part["low"], part["high"] - part["value"]]
        if source.startswith("measured:"):
            axes.errorbar(
                part["cp_size"],
                part["value"],
                yerr=spread if part["low"].notna().all() else None,
                label=f"{source.replace(':', ', ')}, {_steps(part)}",
                color=colours[1],
                marker="s",
                mfc="white",
                ls="none",
            )
        elif source in _PUBLISHED:
            label, marker = _PUBLISHED[source]
            axes.plot(
                part["cp_size"], part["value"], label=label, color="0.15", marker=marker,
                ms=5, ls="none",
            )  # fmt: skip


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """One panel for each lengths; more rows where there are several packings or layers."""
    frame = tables["metrics"].query("metric == 'imbalance'").sort_values("cp_size")
    keys = ("packing", "attention")
    simulated = frame[frame["source"] == "simulated"]
    rows, columns = panel_rows(simulated, keys), list(dict.fromkeys(simulated["lengths"]))
    figure, axes = new_figure(len(rows), len(columns), sharex=True, sharey=True)
    for i, key in enumerate(rows):
        for j, lengths in enumerate(columns):
            chosen = frame[(frame[list(keys)] == key).all(axis=1) & (frame["lengths"] == lengths)]
            _panel(axes[i, j], chosen)
            cp_axis(axes[i, j], sorted(simulated["cp_size"].unique()))
            axes[i, j].set_title(" · ".join(filter(None, (lengths, row_title(key, rows)))))
            axes[i, j].set_ylim(bottom=0)
            axes[i, j].label_outer()
        axes[i, 0].set_ylabel("imbalance,\n(max − min) / mean")
    richest = max(axes.flat, key=lambda panel: len(panel.get_legend_handles_labels()[1]))
    below(figure, richest)
    return figure, frame
