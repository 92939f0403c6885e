"""How the cost of a rank spreads: violins with boxes inside, per CP degree."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from cpbalance.figures.style import cost_label, main_cost, new_figure, panel_rows, row_title


def draw(tables: dict[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """One panel for each lengths; more rows where there are several packings, layers or costs."""
    frame = main_cost(tables["rank_costs"])
    keys = ("packing", "attention", "cost")
    rows, columns = panel_rows(frame, keys), list(dict.fromkeys(frame["lengths"]))
    figure, axes = new_figure(len(rows), len(columns), sharex=True, sharey="row")
    for i, key in enumerate(rows):
        for j, lengths in enumerate(columns):
            panel = axes[i, j]
            chosen = frame[(frame[list(keys)] == key).all(axis=1) & (frame["lengths"] == lengths)]
            sns.violinplot(
                chosen, x="cp_size", y="relative_cost", inner="box", cut=0, density_norm="width",
                linewidth=0.5, color="0.85", inner_kws={"box_width": 3}, ax=panel,
            )  # fmt: skip
            panel.axhline(1, color="0.3", lw=0.6, ls=":")
            panel.set_title(" · ".join(filter(None, (lengths, row_title(key, rows)))))
            panel.set(xlabel="CP degree", ylabel=cost_label(frame))
            panel.label_outer()
    return figure, _summary(frame)


def _summary(frame: pd.DataFrame) -> pd.DataFrame:
    keys = ["lengths", "packing", "attention", "cost", "cp_size"]
    summary = frame.groupby(keys, sort=False)["relative_cost"].describe(
        percentiles=[0.05, 0.25, 0.5, 0.75, 0.95]
    )
    return summary.reset_index()
