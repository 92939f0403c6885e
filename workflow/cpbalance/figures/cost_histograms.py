"""Histogram of the cost of a rank, one panel a CP degree, outlines of all lengths on one scale."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from cpbalance.figures.style import DASHES, below, cost_label, main_cost, new_figure, series_label

BINS = np.linspace(0, 4, 161)


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """Densities over relative cost; the last bin holds what lies beyond it."""
    frame = main_cost(tables["rank_costs"])
    keys = ["lengths", "packing", "attention", "cost"]
    counted = [
        _histogram(part["relative_cost"]).assign(**dict(zip([*keys, "cp_size"], key, strict=True)))
        for key, part in frame.groupby([*keys, "cp_size"], sort=False)
    ]
    histogram = pd.concat(counted, ignore_index=True)
    cp_sizes = sorted(frame["cp_size"].unique())
    columns = min(4, len(cp_sizes))
    rows = -(-len(cp_sizes) // columns)
    figure, axes = new_figure(rows, columns, height=1.6, sharex=True)
    colours = sns.color_palette("colorblind")
    for panel, cp_size in zip(axes.flat, cp_sizes, strict=False):
        chosen = histogram[histogram["cp_size"] == cp_size]
        for index, (key, part) in enumerate(chosen.groupby(keys, sort=False)):
            label = series_label(key, keys, frame)
            panel.stairs(
                part["density"], BINS, label=label, color=colours[index % len(colours)],
                ls=DASHES[index % len(DASHES)], lw=1,
            )  # fmt: skip
        panel.set_title(f"CP {cp_size}")
        panel.set_yticks([])
        panel.set_xlim(0, 3)
    for panel in axes.flat[len(cp_sizes) :]:
        panel.set_visible(False)
    for column in range(columns):
        lowest = max(row for row in range(rows) if axes[row, column].get_visible())
        axes[lowest, column].set_xlabel(cost_label(frame))
        axes[lowest, column].tick_params(labelbottom=True)
    for panel in axes[:, 0]:
        panel.set_ylabel("density")
    below(figure, axes.flat[0])
    return figure, histogram


def _histogram(relative_cost: pd.Series) -> pd.DataFrame:
    counts, edges = np.histogram(np.minimum(relative_cost, BINS[-1]), BINS)
    density = counts / counts.sum() / np.diff(edges)
    return pd.DataFrame({"from": edges[:-1], "to": edges[1:], "density": density})
