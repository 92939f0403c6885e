"""The headline table: imbalance per CP degree, source by source, as text for a terminal."""

import pandas as pd

from cpbalance.names import BACKWARD_COST

# Source -> column heading, in the order they are read.
_HEADINGS = {
    "simulated": "simulated",
    "theory:distribution": "theory",
    "published:article-simulated": "reference",
    "published:article-model": "article",
    "published:article-h100": "article H100",
}
_PREDICTED = ("simulated", "theory:distribution")


def headline(metrics: pd.DataFrame, where: str) -> str:
    """Imbalance, (max − min)/mean, one block per lengths, packing and attention.

    ``metrics`` has the columns of the metrics table. Of several simulated costs the first one
    stands here; a note says which, and what was measured on how many steps.
    """
    rows = metrics[metrics["metric"] == "imbalance"]
    cost = rows.loc[rows["source"] == "simulated", "cost"].iloc[0]
    rows = rows[~rows["source"].isin(_PREDICTED) | (rows["cost"] == cost)]
    rows = with_direction(rows)
    order = column_headings(rows)
    headings = {source: name for source, name in order.items() if source not in _HEADINGS}
    rows = rows.assign(heading=rows["source"].map(order)).dropna(subset="heading")
    blocks = [
        "Imbalance of a step: (max - min)/mean over its packs, mean over steps",
        "\n".join([f"simulated: cost {cost}", *_notes(rows, headings)]),
    ]
    for key, block in rows.groupby(["lengths", "packing", "attention"], sort=False):
        present = [name for name in order.values() if name in set(block["heading"])]
        table = block.pivot(index="cp_size", columns="heading", values="value")
        table = table.sort_index()[present]
        table.index.name, table.columns.name = None, "CP"
        text = table.to_string(float_format="{:.3f}".format, na_rep="-")
        blocks.append(f"{' · '.join(key)}\n{text}")
    blocks.append(where)
    return "\n\n".join(blocks) + "\n"


def with_direction(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows whose source tells measured backward passes from forward ones."""
    backward = metrics["source"].str.startswith("measured:") & metrics["cost"].str.endswith(
        BACKWARD_COST
    )
    named = metrics["source"].where(~backward, metrics["source"] + " backward")
    return metrics.assign(source=named)


def column_headings(metrics: pd.DataFrame) -> dict[str, str]:
    """Heading of each source that has a column, in the order of the columns."""
    measured = metrics.loc[metrics["source"].str.startswith("measured:"), "source"].unique()
    return {**_HEADINGS, **{source: source.split(":")[1] for source in measured}}


def _notes(rows: pd.DataFrame, measured: dict[str, str]) -> list[str]:
    """What the columns are, for those that are there."""
    notes = []
    for source, kernel in measured.items():
        steps = int(rows.loc[rows["source"] == source, "steps"].max())
        plural = "s" if steps > 1 else ""
        notes.append(
            f"{kernel}: measured on this machine, {steps} step{plural}; see calibration.csv"
        )
    known = set(rows["source"])
    if "published:article-simulated" in known:
        notes.append("reference: the article's setting, 20,000 steps, independent implementation")
    if "published:article-model" in known:
        notes.append("article, article H100: its figures, model (100 steps) and FA3 (2 steps)")
    return notes
