"""Where the law 1/CP holds and where it bends: variance, neighbours, and shuffling.

Left, CP times the squared CV over its value at the largest CP degree: level where the law holds.
Middle, correlation of the costs of neighbouring packs. Right, imbalance as it is and after packs
are shuffled over steps, which is what independent packs would have.
"""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cpbalance.figures.style import DASHES, MARKERS, below, cp_axis, new_figure

_KEYS = ["lengths", "packing", "attention", "cost"]


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """Three panels, one colour for every series; marks simulated, lines predicted."""
    theory, metrics, neighbours = (tables[n] for n in ("theory", "metrics", "neighbours"))
    figure, axes = new_figure(1, 3, height=2.8)
    left, middle, right = axes[0]
    shown = []
    for index, (key, part) in enumerate(theory.groupby(_KEYS, sort=False)):
        look = {"color": sns.color_palette("colorblind")[index % 10]}
        mark = MARKERS[index % len(MARKERS)]
        dash = DASHES[index % len(DASHES)]
        label = " · ".join(
            text for text, column in zip(key, _KEYS, strict=True)
            if column == "lengths" or theory[column].nunique() > 1
        )  # fmt: skip
        exact = part[part["level"] == "moments"].sort_values("cp_size")
        law = part[part["level"] == "distribution"].sort_values("cp_size")
        own = (neighbours[_KEYS] == key).all(axis=1)
        between = neighbours[own].pivot(index="cp_size", columns="quantity")
        values = metrics[(metrics[_KEYS] == key).all(axis=1) & (metrics["source"] == "simulated")]
        cv = values[values["metric"] == "cv"].sort_values("cp_size")
        imbalance = values[values["metric"] == "imbalance"].sort_values("cp_size")

        scale = exact["cp_size"].iloc[-1] * exact["cv"].iloc[-1] ** 2
        left.plot(exact["cp_size"], exact["cp_size"] * exact["cv"] ** 2 / scale, ls=dash, **look)
        left.plot(cv["cp_size"], cv["cp_size"] * cv["value"] ** 2 / scale, mark, **look,
                  label=label)  # fmt: skip
        middle.plot(law["cp_size"], law["neighbour_correlation"], ls=dash, **look)
        right.plot(law["cp_size"], law["imbalance"], ls=dash, **look)
        right.plot(imbalance["cp_size"], imbalance["value"], mark, **look)
        if len(between):
            _between(middle, right, between, mark, look)
        names = dict(zip(_KEYS, key, strict=True))
        shown += [
            law[["cp_size", "cv", "neighbour_correlation", "imbalance"]].assign(
                what="predicted", **names
            ),
            between.stack(future_stack=True).reset_index().assign(what="simulated", **names),
        ]
    sizes = sorted(theory["cp_size"].unique())
    for panel, text in (
        (left, "CP · CV², over that at the largest CP"),
        (middle, "correlation of neighbouring packs"),
        (right, "imbalance; hollow: packs shuffled"),
    ):
        cp_axis(panel, sizes)
        panel.set_ylabel(text)
    left.set_yscale("log")
    right.set_ylim(bottom=0)
    below(figure, left)
    return figure, pd.concat(shown, ignore_index=True)


def _between(middle: Axes, right: Axes, between: pd.DataFrame, mark: str, look: dict) -> None:
    for panel, quantity, face in (
        (middle, "correlation", None),
        (right, "shuffled_imbalance", "white"),
    ):
        panel.errorbar(
            between.index, between["simulated", quantity],
            yerr=1.96 * between["standard_error", quantity].to_numpy(np.float64),
            marker=mark, ls="none", lw=0.8, mfc=face or look["color"], **look,
        )  # fmt: skip
