"""Tails of the document lengths: how many documents, and how many tokens, sit in long ones."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from cpbalance.figures.style import DASHES, below, new_figure

_PANELS = {
    "documents_at_least": "share of documents\nof at least so many tokens",
    "tokens_at_least": "share of tokens\nin such documents",
}


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """Two panels on log axes, one line for every lengths, as sampled (after the cap)."""
    frame = tables["length_curves"]
    figure, axes = new_figure(1, 2, height=2.6, sharex=True)
    colours = sns.color_palette("colorblind")
    for panel, (column, label) in zip(axes.flat, _PANELS.items(), strict=True):
        for index, (name, part) in enumerate(frame.groupby("lengths", sort=False)):
            panel.plot(
                part["num_tokens"], part[column], label=name, color=colours[index % len(colours)],
                ls=DASHES[index % len(DASHES)], drawstyle="steps-pre",
            )  # fmt: skip
        panel.set(xscale="log", xlabel="document length, tokens", ylabel=label)
    axes[0, 0].set_yscale("log")
    below(figure, axes[0, 0])
    return figure, frame
