r"""Tables and numbers for a paper: booktabs tables, and a ``\newcommand`` for every number quoted.

A paper that takes its numbers from these files cannot disagree with its figures. Macro names hold
letters only, so digits are spelt: ``\ImbalanceExponentialSimulatedCpOneSix`` is the imbalance of
the lengths ``exponential``, simulated, at CP 16.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cpbalance.errors import InputError

_DIGITS = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
# Metrics that a paper quotes -> how many digits stand after the point.
QUOTED = {"imbalance": 3, "max_over_mean": 3, "max_over_min": 2, "cv": 3}


def escape(text: str) -> str:
    """Plain text as LaTeX."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def camel(text: str) -> str:
    """Letters of a macro name for any text: digits spelt, words joined with capitals."""
    spelt = re.sub(r"[0-9]", lambda match: f" {_DIGITS[int(match[0])]} ", text)
    return "".join(word[0].upper() + word[1:] for word in re.findall(r"[A-Za-z]+", spelt))


def number(value: float, digits: int) -> str:
    """A number for a table, text or formula, a dash where there is none."""
    if pd.isna(value):
        return "--"
    sign = r"\ensuremath{-}" if value < 0 else ""
    return f"{sign}{abs(value):.{digits}f}"


def interval(value: float, low: float, high: float, digits: int) -> str:
    """A number with its interval, if it has one."""
    if pd.isna(low) or pd.isna(high):
        return number(value, digits)
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def booktabs(frame: pd.DataFrame, caption: str, label: str) -> str:
    """A table environment of ``frame``, whose cells are LaTeX already; the first column is left."""
    columns = "l" + "r" * (frame.shape[1] - 1)
    body = [" & ".join(row) + r" \\" for row in frame.itertuples(index=False, name=None)]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{caption}}}",
            rf"  \label{{{label}}}",
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            "    " + " & ".join(frame.columns) + r" \\",
            r"    \midrule",
            *(f"    {line}" for line in body),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def macros(metrics: pd.DataFrame, slopes: pd.DataFrame) -> str:
    r"""A file of ``\newcommand`` for every quoted metric and slope.

    Packing, attention and cost stand in a name only where a source has several. Raises
    :class:`~cpbalance.errors.InputError` where two numbers would have one name.
    """
    commands: dict[str, str] = {}
    optional = ["packing", "attention", "cost"]
    several = metrics.groupby("source")[optional].nunique() > 1
    for row in metrics[metrics["metric"].isin(QUOTED)].to_dict("records"):
        words = [row["metric"], row["lengths"], row["source"], f"cp {row['cp_size']}"]
        words[2:2] = [row[key] for key in optional if several.loc[row["source"], key]]
        _define(commands, words, number(row["value"], QUOTED[row["metric"]]))
    for row in slopes.to_dict("records"):
        words = [row["metric"], "slope", row["lengths"], row["source"]]
        words[3:3] = [row[key] for key in optional if several.loc[row["source"], key]]
        _define(commands, words, number(row["slope"], 2))
    lines = [rf"\newcommand{{\{name}}}{{{value}}}" for name, value in commands.items()]
    return "\n".join(lines) + "\n"


def _define(commands: dict[str, str], words: Sequence[str], value: str) -> None:
    name = camel(" ".join(words))
    if name in commands:
        raise InputError(
            f"two numbers would be \\{name} in LaTeX: rename lengths or attention layers so that "
            f"their letters and digits differ"
        )
    commands[name] = value


def imbalance_table(metrics: pd.DataFrame, headings: Mapping[str, str]) -> str:
    """Imbalance, a row for each lengths and CP degree, a column for each source.

    ``headings`` maps each source that has a column to what stands above it; simulated values have
    their interval. Of several packings, layers or costs of a source, the first stands here.
    """
    rows = metrics[(metrics["metric"] == "imbalance") & metrics["source"].isin(headings)]
    rows = rows.drop_duplicates(["lengths", "cp_size", "source"])
    cells = {(row.lengths, row.cp_size, row.source): _imbalance(row) for row in rows.itertuples()}
    present = [source for source in headings if source in set(rows["source"])]
    keys = list(dict.fromkeys((lengths, cp_size) for lengths, cp_size, _ in cells))
    columns = {
        "lengths": [escape(lengths) for lengths, _ in keys],
        "CP": [str(cp_size) for _, cp_size in keys],
    }
    for source in present:
        columns[escape(headings[source])] = [cells.get((*key, source), "--") for key in keys]
    caption = r"Imbalance of a step, $(\max - \min)/\mathrm{mean}$, with the interval over steps."
    return booktabs(pd.DataFrame(columns), caption, "tab:imbalance")


def _imbalance(row: Any) -> str:
    if row.source == "simulated":
        return interval(row.value, row.low, row.high, 3)
    return number(row.value, 3)


def slopes_table(slopes: pd.DataFrame) -> str:
    """Fitted exponents in CP, with their intervals and what independence would give.

    Packing and attention have a column where there are several.
    """
    several = [key for key in ("packing", "attention") if slopes[key].nunique() > 1]
    frame = pd.DataFrame(
        {
            "lengths": [escape(name) for name in slopes["lengths"]],
            **{key: [escape(name) for name in slopes[key]] for key in several},
            "source": [escape(name) for name in slopes["source"]],
            "cost": [escape(name) for name in slopes["cost"]],
            "metric": [escape(name) for name in slopes["metric"]],
            "exponent": [interval(r.slope, r.low, r.high, 2) for r in slopes.itertuples()],
            "independent": [number(value, 1) for value in slopes["expected"]],
        }
    )
    return booktabs(frame, "Fitted exponents in the CP degree.", "tab:exponents")


def comparison_table(comparison: pd.DataFrame) -> str:
    """Imbalance beside published values: a row for each series and CP degree, z-scores in brackets.

    Of several costs of a source, the first stands here.
    """
    rows = comparison[comparison["metric"] == "imbalance"]
    rows = rows.drop_duplicates(["lengths", "source", "cp_size", "reference"])
    cells = {
        (row.lengths, row.source, row.cp_size, row.reference): (
            f"{number(row.reference_value, 3)} ({number(row.z, 1)})"
        )
        for row in rows.itertuples()
    }
    series = rows.drop_duplicates(["lengths", "source", "cp_size"])
    keys = list(series[["lengths", "source", "cp_size"]].itertuples(index=False, name=None))
    columns = {
        "lengths": [escape(lengths) for lengths, _, _ in keys],
        "source": [escape(source) for _, source, _ in keys],
        "CP": [str(cp_size) for _, _, cp_size in keys],
        "value": [number(value, 3) for value in series["value"]],
    }
    for reference in rows["reference"].unique():
        columns[escape(reference)] = [cells.get((*key, reference), "--") for key in keys]
    caption = "Imbalance beside published values, with $z$-scores in brackets."
    return booktabs(pd.DataFrame(columns), caption, "tab:published")
