"""Imbalance of measured packs beside what the fitted kernel time predicts for the same packs."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from cpbalance.figures.style import COLUMN, PAGE, below, cp_axis, new_figure


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """One panel for each kernel, attention layer, lengths and direction."""
    frame = tables["calibration"]
    groups = list(frame.groupby(["kernel", "attention", "lengths", "direction"]))
    columns = min(len(groups), 3)
    lines = -(-len(groups) // columns)
    figure, axes = new_figure(
        lines, columns, width=COLUMN if columns == 1 else PAGE, sharex=True, sharey=True
    )
    colours = sns.color_palette("colorblind")
    for panel, (key, rows) in zip(axes.flat, groups, strict=False):
        panel.plot(
            rows["cp_size"],
            rows["predicted_imbalance"],
            color=colours[0],
            marker="o",
            label="calibrated model",
        )
        panel.plot(
            rows["cp_size"],
            rows["measured_imbalance"],
            color=colours[1],
            marker="s",
            mfc="white",
            ls="none",
            label="measured",
        )
        for row in rows.itertuples():
            panel.annotate(
                f"{100 * row.relative_difference:+.1f}%".replace("-", "−"),
                (row.cp_size, row.measured_imbalance),
                xytext=(0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=6,
            )
        cp_axis(panel, sorted(frame["cp_size"].unique()))
        panel.set_xlim(frame["cp_size"].min() / 1.4, frame["cp_size"].max() * 1.4)
        panel.set_title(" · ".join(key[:3] + key[3:] * (frame["direction"].nunique() > 1)))
        panel.set_ylim(bottom=0, top=1.15 * frame["measured_imbalance"].max())
        panel.label_outer()
    for panel in axes.flat[len(groups) :]:
        panel.set_visible(False)
    for line in axes:
        line[0].set_ylabel("imbalance,\n(max − min) / mean")
    below(figure, axes[0, 0])
    return figure, frame
