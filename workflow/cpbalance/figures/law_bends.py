"""Where the law 1/CP holds and where it bends: variance, neighbours, and shuffling.

Left, CP times the squared CV over its predicted value at the largest CP degree: level where the law
holds. Middle, correlation of the costs of neighbouring packs. Right, imbalance as it is and after
packs are shuffled over steps, which is what independent packs would have.
"""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from cpbalance.figures.style import (
    DASHES,
    MARKERS,
    below,
    cp_axis,
    main_cost,
    new_figure,
    series_label,
)

_KEYS = ["lengths", "packing", "attention", "cost"]
_LABELS = (
    "CP · CV²,\nover its predicted value at the largest CP",
    "correlation of\nneighbouring packs",
    "imbalance; hollow: packs\nshuffled over steps",
)


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """Three panels, a colour for every series of the first cost; marks simulated, lines theory."""
    theory = main_cost(tables["theory"]).sort_values("cp_size", kind="stable")
    figure, axes = new_figure(1, 3, height=2.8)
    shown = []
    for index, (series, part) in enumerate(theory.groupby(_KEYS, sort=False)):
        look = {"color": sns.color_palette("colorblind")[index % 10]}
        mark, dash = MARKERS[index % len(MARKERS)], DASHES[index % len(DASHES)]
        label = series_label(series, _KEYS, theory)
        axes[0, 0].plot([], [], marker=mark, ls=dash, label=label, **look)
        predicted, simulated = _predicted(part), _simulated(tables, series)
        scale = float(predicted["squared"].iloc[-1]) or 1.0
        for frame in (predicted, simulated):
            frame["squared"] /= scale
        _lines(axes[0], predicted, dash, look)
        _marks(axes[0], simulated, mark, look)
        names = dict(zip(_KEYS, series, strict=True))
        shown += [
            predicted.assign(what="predicted", **names),
            simulated.assign(what="simulated", **names),
        ]
    for panel, text in zip(axes[0], _LABELS, strict=True):
        cp_axis(panel, sorted(theory["cp_size"].unique()))
        panel.set_ylabel(text)
    axes[0, 0].set_yscale("log")
    axes[0, 0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes[0, 0].yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes[0, 0].yaxis.set_minor_formatter(NullFormatter())
    axes[0, 2].set_ylim(bottom=0)
    below(figure, axes[0, 0])
    return figure, pd.concat(shown, ignore_index=True)


def _predicted(part: pd.DataFrame) -> pd.DataFrame:
    law = part[part["level"] == "distribution"]
    return pd.DataFrame(
        {
            "cp_size": law["cp_size"],
            "squared": law["cp_size"] * law["cv"] ** 2,
            "correlation": law["neighbour_correlation"],
            "imbalance": law["imbalance"],
        }
    )


def _simulated(tables: dict[str, pd.DataFrame], series: tuple[str, ...]) -> pd.DataFrame:
    """CV and imbalance by CP degree, and, where there are neighbours, what they share."""
    metrics, neighbours = tables["metrics"], tables["neighbours"]
    chosen = (metrics[_KEYS] == series).all(axis=1) & (metrics["source"] == "simulated")
    frame = metrics[chosen].pivot(index="cp_size", columns="metric", values="value")
    between = neighbours[(neighbours[_KEYS] == series).all(axis=1)]
    for column in ("simulated", "standard_error"):
        wide = between.pivot(index="cp_size", columns="quantity", values=column)
        wide = wide.reindex(columns=["correlation", "shuffled_imbalance"])
        frame = frame.join(wide.add_suffix("_error" if column == "standard_error" else ""))
    frame = frame.reset_index()
    frame["squared"] = frame["cp_size"] * frame["cv"] ** 2
    columns = ["cp_size", "squared", "imbalance", "correlation", "correlation_error"]
    return frame[[*columns, "shuffled_imbalance", "shuffled_imbalance_error"]].copy()


def _lines(panels: np.ndarray, frame: pd.DataFrame, dash: str, look: dict) -> None:
    for panel, column in zip(panels, ("squared", "correlation", "imbalance"), strict=True):
        panel.plot(frame["cp_size"], frame[column], ls=dash, lw=1, **look)


def _marks(panels: np.ndarray, frame: pd.DataFrame, mark: str, look: dict) -> None:
    left, middle, right = panels
    left.plot(frame["cp_size"], frame["squared"], mark, **look)
    right.plot(frame["cp_size"], frame["imbalance"], mark, **look)
    _with_errors(middle, frame, "correlation", marker=mark, **look)
    _with_errors(right, frame, "shuffled_imbalance", marker=mark, mfc="white", **look)


def _with_errors(panel: Axes, frame: pd.DataFrame, column: str, **look: object) -> None:
    known = frame.dropna(subset=column)
    error = 1.96 * known[f"{column}_error"]
    panel.errorbar(known["cp_size"], known[column], yerr=error, ls="none", lw=0.8, **look)
