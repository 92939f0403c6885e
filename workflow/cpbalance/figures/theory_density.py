"""Density of the cost of a rank: predicted, over the histogram of simulated packs."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cpbalance.figures.style import below, new_figure, panel_rows, row_title

_KEYS = ("packing", "attention", "cost")
# Panels of a row: the degrees where shapes differ most, and the last.
_PANELS = 4
_BINS = 60


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """A row for each lengths, a column for some CP degrees."""
    ranks, density = tables["rank_costs"], tables["theory_density"]
    rows = panel_rows(density, ("lengths", *_KEYS))
    sizes = sorted(density["cp_size"].unique())
    chosen = [
        sizes[i] for i in np.unique(np.linspace(0, len(sizes) - 1, _PANELS).round().astype(int))
    ]
    figure, axes = new_figure(len(rows), len(chosen), height=1.45)
    shown = []
    for i, key in enumerate(rows):
        for j, cp_size in enumerate(chosen):
            law = _of(density, key, cp_size)
            counted = _histogram(_of(ranks, key, cp_size)["relative_cost"], law)
            _panel(axes[i, j], counted, law)
            names = dict(zip(("lengths", *_KEYS), key, strict=True))
            shown += [
                counted.assign(what="simulated", **names, cp_size=cp_size),
                law[["relative_cost", "density"]].assign(
                    what="predicted", **names, cp_size=cp_size
                ),
            ]
            if i == 0:
                axes[i, j].set_title(f"CP {cp_size}")
        label = " · ".join(filter(None, (key[0], row_title(key[1:], [row[1:] for row in rows]))))
        axes[i, 0].set_ylabel(label)
    for panel in axes[-1]:
        panel.set_xlabel("cost of a rank / mean")
    below(figure, axes[0, 0])
    return figure, pd.concat(shown, ignore_index=True)


def _of(frame: pd.DataFrame, key: tuple[str, ...], cp_size: int) -> pd.DataFrame:
    match = (frame[["lengths", *_KEYS]] == key).all(axis=1)
    return frame[match & (frame["cp_size"] == cp_size)]


def _histogram(values: pd.Series, law: pd.DataFrame) -> pd.DataFrame:
    # Costs beyond the tabulated density are those of about one pack in a million.
    low, high = law["relative_cost"].min(), law["relative_cost"].max()
    edges = np.linspace(min(low, values.min()), max(high, values.max()), _BINS + 1)
    counts, _ = np.histogram(values, edges)
    density = counts / counts.sum() / np.diff(edges)
    return pd.DataFrame({"from": edges[:-1], "to": edges[1:], "density": density})


def _panel(panel: Axes, counted: pd.DataFrame, law: pd.DataFrame) -> None:
    edges = np.append(counted["from"], counted["to"].iloc[-1])
    panel.stairs(counted["density"], edges, fill=True, color="0.8", label="simulated packs")
    panel.plot(
        law["relative_cost"], law["density"], color=sns.color_palette("colorblind")[0], lw=1,
        label="predicted",
    )  # fmt: skip
    panel.set_yticks([])
    # Up to where one pack in ten thousand lies.
    total = law["density"].cumsum() / law["density"].sum()
    inside = law["relative_cost"][(total > 1e-4) & (total < 1 - 1e-4)]
    room = 0.05 * (inside.max() - inside.min())
    panel.set_xlim(inside.min() - room, inside.max() + room)
    tallest = max(counted["density"].max(), law["density"].quantile(0.999))
    panel.set_ylim(0, 1.1 * tallest)
