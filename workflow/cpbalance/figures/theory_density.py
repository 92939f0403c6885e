"""Density of the cost of a rank: predicted, over the histogram of simulated packs."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cpbalance.figures.style import below, main_cost, new_figure, panel_rows, row_title

_KEYS = ("packing", "attention", "cost")
# Panels of a row: the degrees where shapes differ most, and the last.
_PANELS = 4
_BINS = 60
# Cells of the predicted density, so that a cost with steps of its own, like one counted in tiles,
# shows as its average over what the eye tells apart.
_CELLS = 120
# Shares of packs beyond either end of a panel.
_BEYOND = 1e-4


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """A row for each lengths, a column for some CP degrees; the first cost."""
    ranks, density = main_cost(tables["rank_costs"]), main_cost(tables["theory_density"])
    rows = panel_rows(density, ("lengths", *_KEYS))
    sizes = sorted(density["cp_size"].unique())
    places = np.unique(np.linspace(0, len(sizes) - 1, _PANELS).round().astype(int))
    figure, axes = new_figure(len(rows), len(places), height=1.45)
    shown = []
    for i, key in enumerate(rows):
        for j, cp_size in enumerate(sizes[place] for place in places):
            law = _averaged(_of(density, key, cp_size))
            counted = _histogram(_of(ranks, key, cp_size)["relative_cost"], law)
            _panel(axes[i, j], counted, law)
            names = dict(zip(("lengths", *_KEYS), key, strict=True), cp_size=cp_size)
            shown += [
                counted.assign(what="simulated", **names),
                law.assign(what="predicted", **names),
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


def _averaged(law: pd.DataFrame) -> pd.DataFrame:
    """The density averaged over cells between the costs that matter; empty for a constant cost."""
    x, y = law["relative_cost"].to_numpy(), law["density"].to_numpy()
    if len(x) < 2:
        return pd.DataFrame({"from": [], "to": [], "density": []})
    total = np.append(0, np.cumsum((y[1:] + y[:-1]) / 2 * np.diff(x)))
    low, high = np.interp([_BEYOND, 1 - _BEYOND], total / total[-1], x)
    edges = np.linspace(low, high, _CELLS + 1)
    density = np.diff(np.interp(edges, x, total)) / np.diff(edges)
    return pd.DataFrame({"from": edges[:-1], "to": edges[1:], "density": density})


def _histogram(values: pd.Series, law: pd.DataFrame) -> pd.DataFrame:
    ends = (law["from"].min(), law["to"].max()) if len(law) else (values.min(), values.max())
    edges = np.linspace(*ends, _BINS + 1) if ends[1] > ends[0] else ends[0] + np.array([-0.5, 0.5])
    counts, _ = np.histogram(values, edges)
    density = counts / len(values) / np.diff(edges)
    return pd.DataFrame({"from": edges[:-1], "to": edges[1:], "density": density})


def _panel(panel: Axes, counted: pd.DataFrame, law: pd.DataFrame) -> None:
    edges = np.append(counted["from"], counted["to"].iloc[-1])
    panel.stairs(counted["density"], edges, fill=True, color="0.8", label="simulated packs")
    panel.plot(
        (law["from"] + law["to"]) / 2, law["density"], color=sns.color_palette("colorblind")[0],
        lw=1, label="predicted",
    )  # fmt: skip
    panel.set_yticks([])
    panel.set_ylim(bottom=0)
