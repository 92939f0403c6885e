"""How well the median of some samples is known.

The interval is distribution-free: between the k-th smallest and the k-th largest of n samples
lies the true median with probability 1 − 2·P(Binomial(n, ½) < k) (David and Nagaraja, Order
Statistics, §7.1). Fewer than 6 samples have no 95% interval.
"""

from functools import cache
from math import comb
from statistics import median

CONFIDENCE = 0.95


@cache
def interval_rank(count: int, confidence: float = CONFIDENCE) -> int:
    """Largest k whose k-th smallest and k-th largest samples enclose the median, 0 if none does."""
    outside = (1 - confidence) / 2
    rank, below = 0, 0.0
    while True:
        below += comb(count, rank) * 0.5**count
        if below > outside:
            return rank
        rank += 1


def median_interval(samples: list[float]) -> tuple[float, float] | None:
    """95% interval of the median of ``samples``, None where there are too few of them."""
    rank = interval_rank(len(samples))
    if rank == 0:
        return None
    ordered = sorted(samples)
    return ordered[rank - 1], ordered[-rank]


def relative_width(samples: list[float]) -> float:
    """Width of the 95% interval of the median over the median; infinite with too few samples."""
    interval = median_interval(samples)
    if interval is None:
        return float("inf")
    return (interval[1] - interval[0]) / median(samples)
