"""One look for all figures: column widths, colours and marks that survive grey, fixed bytes.

Colours are seaborn's colour-blind palette; whatever a colour says, a marker or a dash says too.
"""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Widths of one and two columns of common two-column journal styles, in inches.
COLUMN, PAGE = 3.4, 7.0

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")

_RC = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same glyphs everywhere
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
}


def use_style(width: float = PAGE) -> None:
    """Set look and width, in inches, of all figures of this process; draws to files only."""
    mpl.use("agg")
    rc = {**_RC, "figure.figsize": (width, 1)}
    if width <= COLUMN:
        rc |= {"axes.labelsize": 6.5, "xtick.labelsize": 6, "ytick.labelsize": 6}
    sns.set_theme(context="paper", style="whitegrid", palette="colorblind", rc=rc)


_TURNED = {"row": "col", "col": "row"}


def _stacked() -> bool:
    """Whether figures are one column wide: panels then stand below each other."""
    return mpl.rcParams["figure.figsize"][0] <= COLUMN


def new_figure(
    rows: int, columns: int, width: float = PAGE, height: float = 2.3, **shared: object
) -> tuple[Figure, np.ndarray]:
    """A figure with axes in an array (rows, columns); ``height`` inches a row.

    It is ``width`` inches wide, or less if all figures are. In a single column its rows stand
    beside each other and its columns below.
    """
    from matplotlib import pyplot as plt

    width = min(width, mpl.rcParams["figure.figsize"][0])
    if not _stacked():
        return plt.subplots(rows, columns, figsize=(width, height * rows), squeeze=False, **shared)
    turned = {key: _TURNED.get(value, value) for key, value in shared.items()}
    # Lower than beside each other, but no lower than what a label of two lines needs.
    each = height if columns == 1 else max(0.75 * height, 1.3 if columns > 3 else 1.9)
    size = (width, each * columns)
    figure, axes = plt.subplots(columns, rows, figsize=size, squeeze=False, **turned)
    return figure, axes.T


def cp_axis(axes: Axes, cp_sizes: Sequence[int]) -> None:
    """A log2 axis whose ticks are the CP degrees."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(cp_sizes), [str(size) for size in cp_sizes])
    axes.minorticks_off()
    axes.set_xlabel("CP degree")


def main_cost(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of the first cost of the configuration: figures of several costs at once are unread."""
    return frame[frame["cost"] == frame["cost"].iloc[0]]


def cost_label(frame: pd.DataFrame) -> str:
    """What an axis of relative costs says: whose cost it is."""
    return f"cost of a rank / mean\n({frame['cost'].iloc[0]})"


def series_label(key: Sequence[str], columns: Sequence[str], frame: pd.DataFrame) -> str:
    """Name of a series: its lengths, and of the other ``columns`` those in which series differ."""
    return " · ".join(
        text
        for text, column in zip(key, columns, strict=True)
        if column == "lengths" or frame[column].nunique() > 1
    )


def panel_rows(frame: pd.DataFrame, keys: Sequence[str]) -> list[tuple[str, ...]]:
    """Distinct values of ``keys``, in the order they stand in the table."""
    return list(frame[list(keys)].drop_duplicates().itertuples(index=False, name=None))


def row_title(key: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """What tells one row of panels from the others; empty where there is only one row."""
    differing = [i for i in range(len(key)) if len({row[i] for row in rows}) > 1]
    return ", ".join(key[i] for i in differing)


def below(figure: Figure, axes: Axes) -> None:
    """One legend for all panels, under them, from the labels of ``axes``; as wide as fits."""
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        # A letter of the legend's size is some 0.052 inches wide, a handle with its gaps 0.5.
        widest = 0.5 + 0.052 * max(map(len, labels))
        columns = max(1, min(len(labels), int(figure.get_figwidth() / widest)))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _repeat_labels(figure: Figure) -> None:
    """Where panels stand below each other, all have the label that the first one has."""
    labels: dict[int, str] = {}
    for panel in figure.axes:
        place = panel.get_subplotspec()
        if place is not None and place.get_gridspec().ncols == 1:
            label = labels.setdefault(place.colspan.start, panel.get_ylabel())
            panel.set_ylabel(panel.get_ylabel() or label)


def save(figure: Figure, frame: pd.DataFrame, outputs: Sequence[tuple[Path, Path]]) -> None:
    """Write PDF, PNG and CSV; each output is (where to write, its final name).

    No dates and no versions are written, so that equal figures are equal bytes.
    """
    if _stacked():
        _repeat_labels(figure)
    metadata = {".pdf": {"CreationDate": None, "Producer": None, "Creator": None}}
    metadata[".png"] = {"Software": None}
    for path, name in outputs:
        if name.suffix == ".csv":
            frame.to_csv(path, index=False, lineterminator="\n")
        else:
            figure.savefig(path, format=name.suffix[1:], metadata=metadata[name.suffix])
