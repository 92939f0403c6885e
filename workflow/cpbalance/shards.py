"""Shares of a run's steps that are worked on apart and put together again.

A shard ``2-of-4`` is the second of four consecutive, near-even shares of n units: unit i belongs to
shard k where (k − 1)·n/N ≤ i < k·n/N, rounded down. A unit is a row group of a stage file (see
:data:`cpbalance.tables.STEPS_PER_ROW_GROUP`), or one step of a timing run. Row groups are computed
and written one by one, so shards put together are the file that one run would have written, byte
for byte.
"""

import re
from dataclasses import dataclass

from cpbalance.errors import InputError


@dataclass(frozen=True)
class Shard:
    """The ``index``-th of ``count`` shares, counted from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}-of-{self.count}"

    def share(self, units: int) -> range:
        """The units, of ``units`` in all, that belong to this shard; empty where N exceeds n."""
        return range((self.index - 1) * units // self.count, self.index * units // self.count)


WHOLE = Shard(1, 1)


def parse_shard(text: str) -> Shard:
    """Read ``K-of-N``; raises :class:`~cpbalance.errors.InputError`."""
    match = re.fullmatch(r"(\d+)-of-(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"shard is {text!r}: give K-of-N with K from 1 to N, say 1-of-4")
    return Shard(int(match[1]), int(match[2]))


def all_shards(count: int) -> list[Shard]:
    """Every shard of ``count``, in order."""
    return [Shard(index, count) for index in range(1, count + 1)]
