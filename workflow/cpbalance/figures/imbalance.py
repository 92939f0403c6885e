"""Imbalance against CP: simulated with its interval, predicted, measured and published values."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cpbalance.figures.style import below, cp_axis, new_figure, panel_rows, row_title
from cpbalance.headline import with_direction

_PUBLISHED = {
    "published:article-model": ("article, model", "x"),
    "published:article-h100": ("article, FA3 on H100 (2 steps)", "+"),
}
_OTHER_DASHES = ("--", ":", "-.")


def _steps(rows: pd.DataFrame) -> str:
    steps = rows["steps"].max()
    return "1 step" if steps == 1 else f"{steps} steps"


def _predictions(axes: Axes, rows: pd.DataFrame) -> None:
    """The first cost with its band and what theory says of it; the others thin beside it."""
    colour = sns.color_palette("colorblind")[0]
    simulated = rows[rows["source"] == "simulated"]
    for index, (cost, part) in enumerate(simulated.groupby("cost", sort=False)):
        x, y = part["cp_size"], part["value"]
        if index == 0:
            axes.plot(x, y, label=f"simulated, {cost}", color=colour, marker="o")
            axes.fill_between(x, part["low"], part["high"], color=colour, alpha=0.25, linewidth=0)
            theory = rows[(rows["source"] == "theory:distribution") & (rows["cost"] == cost)]
            if len(theory):
                x, y = theory["cp_size"], theory["value"]
                axes.plot(x, y, label="theory", color="0.1", lw=0.8, ls=(0, (4, 2)))
        else:
            dash = _OTHER_DASHES[(index - 1) % len(_OTHER_DASHES)]
            axes.plot(x, y, label=f"simulated, {cost}", color="0.5", lw=0.8, ls=dash)


def _observations(axes: Axes, rows: pd.DataFrame) -> None:
    """What was measured here, and what others published."""
    for source, part in with_direction(rows).groupby("source", sort=False):
        if source.startswith("measured:"):
            spread = [part["value"] - part["low"], part["high"] - part["value"]]
            axes.errorbar(
                part["cp_size"],
                part["value"],
                yerr=spread if part["low"].notna().all() else None,
                label=f"{source.replace(':', ', ')} ({_steps(part)})",
                color=sns.color_palette("colorblind")[1],
                marker="v" if source.endswith("backward") else "s",
                mfc="white",
                ls="none",
            )
        elif source in _PUBLISHED:
            label, marker = _PUBLISHED[source]
            look = {"color": "0.15", "marker": marker, "ms": 5, "ls": "none"}
            axes.plot(part["cp_size"], part["value"], label=label, **look)


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """One panel for each lengths; more rows where there are several packings or layers."""
    frame = tables["metrics"].query("metric == 'imbalance'").sort_values("cp_size", kind="stable")
    keys = ("packing", "attention")
    simulated = frame[frame["source"] == "simulated"]
    rows, columns = panel_rows(simulated, keys), list(dict.fromkeys(simulated["lengths"]))
    figure, axes = new_figure(len(rows), len(columns), height=2.6, sharex=True, sharey=True)
    for i, key in enumerate(rows):
        for j, lengths in enumerate(columns):
            chosen = frame[(frame[list(keys)] == key).all(axis=1) & (frame["lengths"] == lengths)]
            _predictions(axes[i, j], chosen)
            _observations(axes[i, j], chosen)
            cp_axis(axes[i, j], sorted(simulated["cp_size"].unique()))
            axes[i, j].set_title(" · ".join(filter(None, (lengths, row_title(key, rows)))))
            axes[i, j].label_outer()
        axes[i, 0].set_ylabel("imbalance,\n(max − min) / mean")
    # Once all is drawn: a limit set before stops the shared axis from growing with later panels.
    axes[0, 0].set_ylim(bottom=0)
    richest = max(axes.flat, key=lambda panel: len(panel.get_legend_handles_labels()[1]))
    below(figure, richest)
    return figure, frame
