"""What imbalance costs: the slowest rank over the mean, and the share of time lost to waiting."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from cpbalance.figures.style import (
    DASHES,
    MARKERS,
    below,
    cp_axis,
    main_cost,
    new_figure,
    series_label,
)

_PANELS = {
    "max_over_mean": "slowest rank / mean",
    "waiting_share": "share lost to waiting, %",
}
_KEYS = ["lengths", "packing", "attention", "cost"]


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """Two panels, one line for every simulated series."""
    frame = main_cost(tables["metrics"].query("source == 'simulated'")).sort_values(
        "cp_size", kind="stable"
    )
    frame = frame[frame["metric"].isin(_PANELS)]
    figure, axes = new_figure(1, 2, height=2.6)
    colours = sns.color_palette("colorblind")
    for panel, (metric, label) in zip(axes.flat, _PANELS.items(), strict=True):
        scale = 100 if metric == "waiting_share" else 1
        chosen = frame[frame["metric"] == metric]
        for index, (key, part) in enumerate(chosen.groupby(_KEYS, sort=False)):
            name = series_label(key, _KEYS, frame)
            colour = colours[index % len(colours)]
            panel.plot(
                part["cp_size"], scale * part["value"], label=name, color=colour,
                marker=MARKERS[index % len(MARKERS)], ls=DASHES[index % len(DASHES)],
            )  # fmt: skip
            panel.fill_between(
                part["cp_size"], scale * part["low"], scale * part["high"], color=colour,
                alpha=0.25, linewidth=0,
            )  # fmt: skip
        cp_axis(panel, sorted(frame["cp_size"].unique()))
        panel.set_ylabel(f"{label}\n({frame['cost'].iloc[0]} cost)")
        panel.set_ylim(bottom=0 if metric == "waiting_share" else 1)
    below(figure, axes[0, 0])
    return figure, frame
