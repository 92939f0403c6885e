"""How many times the variance of exponential lengths is that of normal ones, by their spread."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from cpbalance.figures.style import COLUMN, below, new_figure
from cpbalance.theory.families import EXPONENTIAL, normal_variance

_LOOKS = {
    "documents": ("packs of so many documents (the article)", "--", "s"),
    "tokens": ("packs of so many tokens", "-", "o"),
}


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """Ratio of variances against σ/μ of the normal lengths: formulas, and simulated packs."""
    frame = tables["exponential_normal"]
    figure, axes = new_figure(1, 1, width=COLUMN, height=2.9)
    panel = axes[0, 0]
    grid = np.geomspace(frame["normal_cv"].min(), frame["normal_cv"].max(), 100)
    for index, (kind, (label, dash, marker)) in enumerate(_LOOKS.items()):
        colour = sns.color_palette("colorblind")[index]
        ratio = [EXPONENTIAL[kind] / normal_variance(cv, kind) for cv in grid]
        panel.plot(grid, ratio, color=colour, ls=dash, label=label)
        part = frame[frame["pack"] == kind]
        panel.errorbar(
            part["normal_cv"], part["monte_carlo"], yerr=1.96 * part["standard_error"],
            color="0.1", marker=marker, mfc="white", ms=4, ls="none", lw=0.8,
            label="simulated packs" if index else None,
        )  # fmt: skip
        for row in part.itertuples():
            above = kind == "tokens"
            panel.annotate(
                f"{row.ratio:.3g}", (row.normal_cv, row.ratio), textcoords="offset points",
                xytext=(6, 4) if above else (-4, -4), ha="left" if above else "right",
                va="bottom" if above else "top", fontsize=6.5,
            )  # fmt: skip
    panel.set(xscale="log", yscale="log", xlabel="σ/μ of the normal lengths")
    panel.set_xlim(grid[0] / 1.8, grid[-1] * 1.8)
    panel.set_ylim(frame["ratio"].min() / 2, frame["ratio"].max() * 2)
    panel.set_ylabel("variance of exponential lengths\n/ of normal ones")
    below(figure, panel)
    return figure, frame
