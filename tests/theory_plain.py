"""Plain references for the theory: small length distributions, every step of them enumerated."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr


@dataclass(frozen=True)
class Step:
    """One possible step: its probability and the costs of its packs."""

    probability: float
    costs: tuple[float, ...]


def all_steps(pmf, cost, pack_tokens, groups, piece_tokens=None) -> Iterator[Step]:
    """Every sequence of documents that fills a step, laid end to end, cut, and paid for."""
    lengths = [length for length, p in enumerate(pmf) if p > 0]

    def extend(segments, filled, probability):
        if filled >= pack_tokens * groups:
            yield Step(probability, _costs(segments, cost, pack_tokens, groups))
            return
        for length in lengths:
            pieces = [length]
            if piece_tokens is not None:
                whole, rest = divmod(length, piece_tokens)
                pieces = [piece_tokens] * whole + [rest] * (rest > 0)
            yield from extend(segments + pieces, filled + length, probability * pmf[length])

    yield from extend([], 0, 1.0)


def _costs(segments, cost, pack_tokens, groups) -> tuple[float, ...]:
    ends = set(itertools.accumulate(segments)) | {pack_tokens * g for g in range(groups + 1)}
    places = sorted(end for end in ends if end <= pack_tokens * groups)
    total = [0.0] * groups
    for begin, end in itertools.pairwise(places):
        total[begin // pack_tokens] += cost[end - begin]
    return tuple(total)


def pooled_moments(steps) -> tuple[float, float, float]:
    """Mean, variance and third central moment over all packs of all steps."""
    weights = np.array([step.probability for step in steps])
    costs = np.array([step.costs for step in steps])
    mean = float(weights @ costs.mean(axis=1))
    return (
        mean,
        float(weights @ ((costs - mean) ** 2).mean(axis=1)),
        float(weights @ ((costs - mean) ** 3).mean(axis=1)),
    )


def clipped_pmf(cumulative, low, high):
    """Lengths drawn, raised to ``low``, cut at ``high`` and rounded down."""
    at = np.arange(high + 2)
    below = cumulative(at.astype(float))
    below[: low + 1] = 0.0
    below[-1] = 1.0
    return np.diff(below)


def article_pmf(name):
    """The article's two distributions: mean 1024, σ = 256 of the normal, within 10 … 8192."""
    if name == "exponential":
        return clipped_pmf(lambda x: -np.expm1(-x / 1024), 10, 8192)
    return clipped_pmf(lambda x: ndtr((x - 1024) / 256), 10, 8192)


def quadratic(cp_sizes):
    """The article's cost, Σ L²/CP, for every CP degree."""
    return {size: (lambda length, size=size: length**2.0 / size, 0.0) for size in cp_sizes}
