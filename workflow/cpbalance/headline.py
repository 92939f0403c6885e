"""The headline table: imbalance per CP degree, source by source, as text for a terminal."""

import pandas as pd

# Source prefix -> column heading, in the order they are read.
_HEADINGS = {
    "simulated": "simulated",
    "theory:distribution": "theory",
    "measured:": "measured",
    "published:article-simulated": "reference",
    "published:article-model": "article, model",
    "published:article-h100": "article, H100",
}


def _heading(source: str) -> str | None:
    for prefix, heading in _HEADINGS.items():
        if source.startswith(prefix):
            kernel = source.removeprefix("measured:")
            return f"{heading} ({kernel})" if prefix == "measured:" else heading
    return None


def headline(metrics: pd.DataFrame, where: str) -> str:
    """Imbalance, (max − min)/mean, one block per lengths, packing and attention.

    ``metrics`` has the columns of the metrics table. A simulated cost other than ``quadratic``
    stands in a column of its own.
    """
    rows = metrics[metrics["metric"] == "imbalance"].copy()
    rows["heading"] = rows["source"].map(_heading)
    measured = rows["source"].str.startswith("measured:")
    # Few steps are measured: a reader who compares has to know how few.
    steps = rows["steps"].map(lambda count: f", {count} step{'s' * (count > 1)}")
    rows.loc[measured, "heading"] += steps[measured]
    rows = rows[rows["heading"].notna()]
    other = rows["source"].isin(["simulated", "theory:distribution"]) & (
        rows["cost"] != rows["cost"].iloc[0] if len(rows) else False
    )
    rows.loc[other, "heading"] += " " + rows.loc[other, "cost"]
    blocks = ["Imbalance of a step, (max - min)/mean over its packs, mean over steps"]
    for key, block in rows.groupby(["lengths", "packing", "attention"], sort=False):
        order = list(dict.fromkeys(block["heading"]))
        order.sort(key=lambda name: [name.startswith(h) for h in _HEADINGS.values()].index(True))
        table = block.pivot_table(
            index="cp_size", columns="heading", values="value", sort=False
        ).sort_index()[order]
        table.index.name, table.columns.name = None, "CP"
        text = table.to_string(float_format="{:.3f}".format, na_rep="-")
        blocks.append(f"{' · '.join(key)}\n{text}")
    blocks.append(where)
    return "\n\n".join(blocks) + "\n"
