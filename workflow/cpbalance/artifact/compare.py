"""What differs between two artifacts: two GPUs, two kernel versions, two clusters.

:func:`settings_differences` lists everything about how the runs were made that is not equal;
:func:`metrics_differences` puts their statistics side by side. Both return pandas frames whose
columns are those of the schemas in :mod:`cpbalance.tables`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from cpbalance.artifact.reader import Artifact
from cpbalance.tables import PROVENANCE_KEY

# As the columns of the settings table.
KEYS = ["lengths", "packing", "attention", "cost", "cp_size", "metric"]
_VALUES = ["value", "low", "high"]
_ABSENT = "–"


def settings_differences(a: Artifact, b: Artifact) -> pd.DataFrame:
    """Every setting, version, device or digest that differs: ``kind``, ``item``, ``a``, ``b``."""
    rows = []
    for kind, left, right in zip(_KINDS, _settings(a), _settings(b), strict=True):
        for item in sorted(left.keys() | right.keys()):
            values = left.get(item, _ABSENT), right.get(item, _ABSENT)
            if values[0] != values[1]:
                rows.append((kind, item, *values))
    return pd.DataFrame(rows, columns=["kind", "item", "a", "b"])


_KINDS = ("run", "config", "machine", "software", "timing")


def _settings(artifact: Artifact) -> tuple[dict[str, str], ...]:
    machine = {k: v for k, v in artifact.environment.items() if k != "packages"}
    run = {"experiment": artifact.experiment, **artifact.run}
    return (
        dict(_flat(run)),
        dict(_flat(artifact.config)),
        dict(_flat(machine)),
        dict(_flat(artifact.environment.get("packages", {}))),
        _timing_settings(artifact),
    )


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Leaves of nested objects as (dotted path, text); a list is one leaf."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _flat(part, f"{path}.{key}" if path else str(key))
    else:
        yield path, value if isinstance(value, str) else json.dumps(value)


def _timing_settings(artifact: Artifact) -> dict[str, str]:
    """How and on what device kernels were timed; the first file of a kernel speaks for it.

    An artifact's only kernel goes by no name, so that two artifacts of one kernel each compare.
    """
    first = {member.split("/")[1]: member for member in reversed(artifact.members("timings"))}
    settings: dict[str, str] = {}
    for kernel, member in first.items():
        metadata = pq.read_schema(artifact.buffer(member)).metadata
        provenance = json.loads(metadata[PROVENANCE_KEY])
        environment = provenance.pop("runs")[0]["environment"]
        provenance.pop("source")
        found = dict(_flat({**provenance, "environment": environment}))
        name = f"{kernel}." if len(first) > 1 else ""
        settings.update({f"{name}{item}": value for item, value in found.items()})
    return settings


def metrics_differences(a: pd.DataFrame, b: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Statistics of two metrics tables side by side; ``names`` are those of their artifacts.

    Rows are matched by lengths, packing, attention, cost, CP degree, metric and source. Where each
    side measured one kernel that the other did not, those two are matched. ``ratio`` is b over a;
    ``overlap`` tells whether their intervals overlap, null where one has none. Published values
    are left out.
    """
    a, b = (frame[~frame["source"].str.startswith("published:")] for frame in (a, b))
    partner = _kernel_partner(set(a["source"]), set(b["source"]))
    left, right = a.assign(match=a["source"].replace(partner)), b.assign(match=b["source"])
    columns = [*KEYS, "match", "source", *_VALUES]
    both = left[columns].merge(right[columns], on=[*KEYS, "match"], suffixes=("_a", "_b"))
    both["ratio"] = both["value_b"] / both["value_a"]
    known = both[["low_a", "high_a", "low_b", "high_b"]].notna().all(axis=1)
    overlap = (both["low_a"] <= both["high_b"]) & (both["low_b"] <= both["high_a"])
    both["overlap"] = overlap.astype("boolean").where(known)
    both = both.drop(columns="match").assign(artifact_a=names[0], artifact_b=names[1])
    return both.sort_values(KEYS, kind="stable", ignore_index=True)


def _kernel_partner(a: set[str], b: set[str]) -> dict[str, str]:
    """Source of a to the source of b it is matched with, where their names differ."""
    only_a, only_b = (
        sorted(s for s in mine - other if s.startswith("measured:"))
        for mine, other in ((a, b), (b, a))
    )
    return {only_a[0]: only_b[0]} if len(only_a) == len(only_b) == 1 else {}


def as_text(settings: pd.DataFrame, metrics: pd.DataFrame, names: Sequence[str]) -> str:
    """Both frames for a terminal; of the metrics, imbalance and mean cost."""
    parts = [f"a: {names[0]}\nb: {names[1]}"]
    for kind, rows in settings.groupby("kind", sort=False):
        parts.append("\n".join([kind, *(f"  {r.item}: {r.a} | {r.b}" for r in rows.itertuples())]))
    if settings.empty:
        parts.append("same settings, machine, software and code")
    shown = metrics[metrics["metric"].isin(["imbalance", "mean"])]
    columns = [*KEYS, "source_a", "value_a", "source_b", "value_b", "ratio", "overlap"]
    if shown.empty:
        parts.append("no statistics in common")
    else:
        text = shown[columns].to_string(index=False, float_format="{:.4g}".format, na_rep="-")
        parts.append(text)
    return "\n\n".join(parts) + "\n"
