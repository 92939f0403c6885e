"""Imbalance by theory's levels against the simulated one, and what is left of the difference."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cpbalance.figures.style import below, cp_axis, main_cost, new_figure, panel_rows, row_title

_KEYS = ("packing", "attention", "cost")
# Source -> label, dash, width, mark of its error; the widest is drawn first.
_LEVELS = {
    "theory:distribution": ("theory, whole distribution", "-", 2.2, "o"),
    "theory:renewal": ("theory, fixed token budget", "--", 1.0, "s"),
    "theory:iid": ("theory, independent documents", ":", 1.2, None),
}


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """The first cost, a column for each lengths: imbalance above, relative errors below."""
    metrics = tables["metrics"].query("metric == 'imbalance'")
    validation = main_cost(tables["validation"])
    validation = validation.query("metric == 'imbalance' and level != 'moments'")
    lengths = list(dict.fromkeys(validation["lengths"]))
    series = panel_rows(validation, _KEYS)
    figure, axes = new_figure(2 * len(series), len(lengths), height=1.7, sharex=True, sharey="row")
    for i, key in enumerate(series):
        for j, name in enumerate(lengths):
            values = _of(metrics, key, name)
            errors = _of(validation, key, name)
            _levels(axes[2 * i, j], values)
            _errors(axes[2 * i + 1, j], errors)
            cp_axis(axes[2 * i + 1, j], sorted(values["cp_size"].unique()))
            title = " · ".join(filter(None, (name, row_title(key, series))))
            axes[2 * i, j].set_title(title)
            axes[2 * i, j].set_xlabel("")
        axes[2 * i, 0].set_ylabel("imbalance,\n(max − min) / mean")
        axes[2 * i + 1, 0].set_ylabel("theory / simulated\n− 1, %")
        # Once all is drawn: a limit set before stops the shared axis from growing.
        axes[2 * i, 0].set_ylim(bottom=0)
    below(figure, axes[0, 0])
    return figure, validation


def _of(frame: pd.DataFrame, key: tuple[str, ...], lengths: str) -> pd.DataFrame:
    chosen = (frame[list(_KEYS)] == key).all(axis=1) & (frame["lengths"] == lengths)
    return frame[chosen].sort_values("cp_size")


def _levels(panel: Axes, values: pd.DataFrame) -> None:
    for source, (label, dash, width, _) in _LEVELS.items():
        part = values[values["source"] == source]
        colour = sns.color_palette("colorblind")[0] if dash == "-" else "0.1"
        panel.plot(part["cp_size"], part["value"], ls=dash, lw=width, color=colour, label=label)
    part = values[values["source"] == "simulated"]
    spread = [part["value"] - part["low"], part["high"] - part["value"]]
    panel.errorbar(
        part["cp_size"], part["value"], yerr=spread if part["low"].notna().all() else None,
        color="0.1", marker="o", ms=3, mfc="white", ls="none", lw=0.8, label="simulated",
    )  # fmt: skip


def _errors(panel: Axes, errors: pd.DataFrame) -> None:
    """Errors of the levels that come near, those of the others are off the scale."""
    panel.axhline(0, color="0.3", lw=0.6)
    for source, (_, _, _, mark) in _LEVELS.items():
        part = errors[errors["level"] == source.partition(":")[2]]
        if mark is None or part.empty:
            continue
        sharp = source == "theory:distribution"
        spread = 196 * part["standard_error"] / part["simulated"].replace(0, np.nan)
        panel.errorbar(
            part["cp_size"], 100 * part["relative_error"],
            yerr=spread if sharp and spread.notna().any() else None, marker=mark, ms=3, lw=0.8,
            ls="none", mfc=None if sharp else "white",
            color=sns.color_palette("colorblind")[0] if sharp else "0.1",
        )  # fmt: skip
