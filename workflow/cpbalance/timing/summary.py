"""From measured calls to one time a pack: the median of its samples, with its 95% interval.

Samples taken while the device was throttling count in no median, nor do warm-up and sentinel.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cpbalance.errors import InputError
from cpbalance.timing.plan import PACK, Target
from cpbalance.timing.statistics import median_interval


@dataclass(frozen=True)
class PackTime:
    """Median time of one pack at the timed heads, in seconds; bounds NaN under 6 samples."""

    seconds: float
    low: float
    high: float
    samples: int
    q_heads: int
    rank_q_heads: int
    num_tokens: int
    num_segments: int

    @property
    def rank_seconds(self) -> float:
        """Time scaled to all heads of the rank: an extrapolation where some were not timed."""
        return self.seconds * self.rank_q_heads / self.q_heads


def pack_times(timings: pa.Table) -> dict[Target, PackTime]:
    """Median time of every pack in a timings table.

    Raises :class:`~cpbalance.errors.InputError` where a pack has no sample without throttling.
    """
    columns = {name: timings[name].to_numpy(zero_copy_only=False) for name in timings.column_names}
    rows = np.flatnonzero(columns["kind"] == PACK)
    grouped: dict[Target, list[int]] = {}
    for row in rows:
        target = Target(
            int(columns["cp_size"][row]),
            int(columns["step"][row]),
            int(columns["pack"][row]),
            str(columns["direction"][row]),
        )
        grouped.setdefault(target, []).append(int(row))
    lost = sum(all(columns["throttled"][row] for row in of) for of in grouped.values())
    if lost:
        raise InputError(
            f"{lost} of {len(grouped)} packs have samples under throttling alone; cool the device "
            f"or lower its load and time again"
        )
    return {target: _pack_time(columns, of) for target, of in sorted(grouped.items())}


def _pack_time(columns: Mapping[str, NDArray], rows: list[int]) -> PackTime:
    clean = [float(columns["seconds"][row]) for row in rows if not columns["throttled"][row]]
    low, high = median_interval(clean) or (float("nan"), float("nan"))
    first = rows[0]
    counts = ("q_heads", "rank_q_heads", "num_tokens", "num_segments")
    return PackTime(
        median(clean), low, high, len(clean), *(int(columns[name][first]) for name in counts)
    )
