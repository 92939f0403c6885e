"""Level 1, the article's theorem: a pack as n = B/E[L] independent documents.

E[T] = n·E[h], Var(T) = n·Var(h), so that with h ∝ 1/CP and B = CP·S the variance falls as 1/CP
and the coefficient of variation as 1/√CP. Source: "Another View on Context Parallel for LLMs:
Balancing Compute". It needs E[h²] < ∞, which for h = L² is E[L⁴] < ∞.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cpbalance.theory.lengths import checked_budget, checked_cost, checked_pmf


@dataclass(frozen=True)
class Moments:
    """First three moments of the cost of a pack, in units of the cost."""

    mean: float
    variance: float
    skewness: float

    @property
    def cv(self) -> float:
        """Coefficient of variation; NaN where the mean is 0."""
        return float(np.sqrt(self.variance)) / self.mean if self.mean else float("nan")


def iid_moments(pmf: ArrayLike, cost: ArrayLike, pack_tokens: int, fixed: float = 0.0) -> Moments:
    """Moments of ``fixed`` plus the cost of B/E[L] independent documents (level 1).

    ``pmf`` and ``cost``: shape (L_max + 1,); ``pack_tokens``: B in tokens; ``fixed``: paid once a
    pack. Raises :class:`~cpbalance.errors.InputError` as the checks of
    :mod:`cpbalance.theory.lengths` do.

    >>> pmf = np.array([0, 0, 1.0])  # every document has 2 tokens
    >>> iid_moments(pmf, np.arange(3) ** 2, pack_tokens=8)
    Moments(mean=16.0, variance=0.0, skewness=0.0)
    """
    pmf = checked_pmf(pmf)
    cost = checked_cost(cost, pmf)
    pack_tokens, _ = checked_budget(pack_tokens, 1)
    length = np.flatnonzero(pmf)
    weight, cost = pmf[length], cost[length]
    documents = pack_tokens / (weight @ length)
    mean = weight @ cost
    centred = cost - mean
    return moments_of(
        fixed + documents * mean,
        documents * (weight @ centred**2),
        documents * (weight @ centred**3),
    )


def moments_of(mean: float, variance: float, third_cumulant: float) -> Moments:
    """Moments from the first three cumulants; rounding below zero variance is taken as zero."""
    # A variance at the rounding error of its own mean is that of a constant.
    if variance <= 1e-24 * mean * mean:
        return Moments(float(mean), 0.0, 0.0)
    return Moments(float(mean), float(variance), float(third_cumulant / variance**1.5))
