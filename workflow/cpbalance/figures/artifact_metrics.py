"""Two artifacts side by side: their imbalance, and how much slower or faster one is.

Above, imbalance against CP for each lengths, the first artifact solid and the second dashed; below,
the ratio of their mean costs, second over first, of which 1 means no difference.
"""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cpbalance.figures.style import MARKERS, below, cp_axis, new_figure

_KEYS = ["packing", "attention", "cost", "source_a"]


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """Two rows of panels, a column for each lengths."""
    frame = tables["artifact_metrics"].query("metric in ('imbalance', 'mean')")
    frame = frame[~frame["source_a"].str.startswith("theory:")]  # follows from the settings
    columns = list(dict.fromkeys(frame["lengths"]))
    figure, axes = new_figure(2, len(columns), sharex=True, sharey="row")
    for j, lengths in enumerate(columns):
        chosen = frame[frame["lengths"] == lengths].sort_values("cp_size")
        for index, (key, series) in enumerate(chosen.groupby(_KEYS, sort=False)):
            look = {
                "color": sns.color_palette("colorblind")[index % 10],
                "marker": MARKERS[index % len(MARKERS)],
            }
            name = _name(key, series, chosen)
            _imbalance(axes[0, j], series[series["metric"] == "imbalance"], name, look)
            mean = series[series["metric"] == "mean"]
            axes[1, j].plot(mean["cp_size"], mean["ratio"], label=name, **look)
        axes[0, j].set_title(lengths)
        axes[1, j].axhline(1, color="0.3", lw=0.6, ls=":")
        cp_axis(axes[1, j], sorted(frame["cp_size"].unique()))
    a, b = frame["artifact_a"].iloc[0], frame["artifact_b"].iloc[0]
    axes[0, 0].set_ylabel("imbalance,\n(max − min) / mean")
    axes[1, 0].set_ylabel(f"mean cost,\n{b} / {a}")
    axes[0, 0].set_ylim(bottom=0)
    below(figure, max(axes[0], key=lambda panel: len(panel.get_legend_handles_labels()[1])))
    return figure, frame


def _imbalance(panel: Axes, rows: pd.DataFrame, name: str, look: dict[str, object]) -> None:
    """The series of both artifacts, with the intervals they have."""
    for side, line, fill in (("a", "-", look["color"]), ("b", "--", "white")):
        value, low, high = (rows[f"{part}_{side}"] for part in ("value", "low", "high"))
        panel.errorbar(
            rows["cp_size"], value, yerr=[(value - low).fillna(0), (high - value).fillna(0)],
            label=f"{rows[f'artifact_{side}'].iloc[0]}: {name}", ls=line, mfc=fill, capsize=2,
            elinewidth=0.7, **look,
        )  # fmt: skip


def _name(key: tuple[str, ...], series: pd.DataFrame, frame: pd.DataFrame) -> str:
    """Source of a series, and what tells it from the others."""
    source_a, source_b = key[-1], series["source_b"].iloc[0]
    words = [source_a if source_a == source_b else f"{source_a} | {source_b}"]
    words += [k for k, column in zip(key[:-1], _KEYS, strict=False) if frame[column].nunique() > 1]
    return ", ".join(words)
