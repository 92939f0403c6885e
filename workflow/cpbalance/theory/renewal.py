"""Level 2: a fixed token budget (renewal-reward).

A pack holds a fixed number of tokens, not of documents. Documents arrive as a renewal process in
token time and each brings the reward h(L). With r = E[h]/E[L] and Y = h(L) − r·L the cumulants of
the cost of B tokens grow as B·ψ⁽ᵏ⁾(0), where E[exp(θ·h − ψ(θ)·L)] = 1:

ψ' = r,  ψ'' = E[Y²]/E[L],  ψ''' = (E[Y³] − 3·ψ''·E[Y·L])/E[L].

Long documents bring cost but leave fewer documents, so Var(Y) is below Var(h): 8μ⁴ against 20μ⁴
for the exponential and h = L². Source: Smith, "Regenerative stochastic processes" (1955); Asmussen,
"Applied Probability and Queues", ch. VI.
"""

import numpy as np
from numpy.typing import ArrayLike

from cpbalance.theory.iid import Moments, moments_of
from cpbalance.theory.lengths import checked_budget, checked_cost, checked_pmf


def renewal_moments(
    pmf: ArrayLike, cost: ArrayLike, pack_tokens: int, fixed: float = 0.0
) -> Moments:
    """Leading-order moments of ``fixed`` plus the cost of B tokens of documents (level 2).

    ``pmf`` and ``cost``: shape (L_max + 1,); ``pack_tokens``: B in tokens. Raises
    :class:`~cpbalance.errors.InputError` as the checks of :mod:`cpbalance.theory.lengths` do.

    >>> pmf = np.array([0, 0.5, 0.5])
    >>> renewal_moments(pmf, np.arange(3), pack_tokens=12).variance  # cost linear in tokens
    0.0
    """
    pmf = checked_pmf(pmf)
    cost = checked_cost(cost, pmf)
    pack_tokens, _ = checked_budget(pack_tokens, 1)
    rate, second, third = cumulant_rates(pmf, cost)
    return moments_of(fixed + pack_tokens * rate, pack_tokens * second, pack_tokens * third)


def cumulant_rates(pmf: np.ndarray, cost: np.ndarray) -> tuple[float, float, float]:
    """First three cumulants of the cost per token, ψ', ψ'' and ψ''', of checked arrays."""
    length = np.flatnonzero(pmf)
    weight, cost = pmf[length], cost[length]
    mean_length = weight @ length
    rate = (weight @ cost) / mean_length
    excess = cost - rate * length
    second = (weight @ excess**2) / mean_length
    third = (weight @ excess**3 - 3 * second * (weight @ (excess * length))) / mean_length
    return float(rate), float(second), float(third)
