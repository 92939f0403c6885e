"""How well a fitted kernel time holds: predicted against measured, and errors of held-out packs."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter

from cpbalance.figures.style import MARKERS, below, new_figure


def _log_ticks(axis: Axis) -> None:
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _fit(axes: Axes, rows: pd.DataFrame) -> None:
    for index, (cp_size, part) in enumerate(rows.groupby("cp_size")):
        axes.plot(
            1e3 * part["measured"],
            1e3 * part["predicted"],
            ls="none",
            marker=MARKERS[index % len(MARKERS)],
            color=sns.color_palette("colorblind")[index],
            mfc="none",
            label=f"CP {cp_size}",
        )
    limits = [1e3 * rows["measured"].min(), 1e3 * rows["measured"].max()]
    axes.plot(limits, limits, color="0.3", lw=0.8, label="equal")
    axes.set(xscale="log", yscale="log", xlabel="measured, ms", ylabel="predicted, ms")
    _log_ticks(axes.xaxis)
    _log_ticks(axes.yaxis)


def _errors(axes: Axes, rows: pd.DataFrame) -> None:
    for column, colour, marker, label in (
        ("quadratic_error", "0.6", "x", "query-key pairs alone"),
        ("held_out_error", sns.color_palette("colorblind")[0], "o", "calibrated"),
    ):
        median = rows[column].abs().median()
        axes.plot(
            1e3 * rows["measured"],
            rows[column],
            ls="none",
            marker=marker,
            color=colour,
            mfc="none",
            label=f"{label}, median {100 * median:.1f}%",
        )
    axes.axhline(0, color="0.3", lw=0.8)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set(xscale="log", xlabel="measured, ms", ylabel="error of held-out packs")
    _log_ticks(axes.xaxis)
    axes.legend(loc="best")


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """One row of two panels for each kernel, attention layer and direction."""
    frame = tables["calibration_fit"]
    groups = list(frame.groupby(["kernel", "attention", "direction"]))
    figure, axes = new_figure(len(groups), 2)
    for (left, right), (key, rows) in zip(axes, groups, strict=True):
        _fit(left, rows)
        _errors(right, rows)
        left.set_title(" · ".join(key))
    below(figure, axes[0, 0])
    return figure, frame
