"""Length distributions and segment costs as arrays: what is valid, and what a cap makes of them.

A document longer than the cap is cut into consecutive pieces of ``piece_tokens`` tokens under the
``split`` policy; the document then costs k·h(piece) + h(rest). A document longer than all tokens
of a step is, within the step, the same as one of exactly that length.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cpbalance.errors import InputError

Floats = NDArray[np.float64]


def checked_pmf(pmf: ArrayLike, max_tokens: int | None = None) -> Floats:
    """The pmf as float64, shape (L_max + 1,), with trailing zeros cut and its sum made 1.

    Raises :class:`~cpbalance.errors.InputError` if it is empty, not one-dimensional, negative,
    not finite, does not sum to 1 (to 1e-6), gives length 0 a probability, or, where
    ``max_tokens`` is given, gives one to a longer document.
    """
    pmf = np.asarray(pmf, dtype=np.float64)
    if pmf.ndim != 1 or not pmf.any():
        raise InputError(
            f"pmf has shape {pmf.shape} and {np.count_nonzero(pmf)} lengths of positive "
            f"probability: give one axis and at least one length"
        )
    if not np.isfinite(pmf).all():
        raise InputError("pmf has values that are not finite: give probabilities")
    if pmf.min() < 0:
        worst = int(pmf.argmin())
        raise InputError(f"pmf[{worst}] is {pmf[worst]:g}: probabilities cannot be negative")
    if pmf[0]:
        raise InputError(f"pmf[0] is {pmf[0]:g}: drop documents of no tokens before counting")
    total = pmf.sum()
    if abs(total - 1) > 1e-6:
        raise InputError(f"pmf sums to {total:.9g}: probabilities must sum to 1")
    longest = int(np.flatnonzero(pmf)[-1])
    if max_tokens is not None and longest > max_tokens:
        raise InputError(
            f"pmf gives documents of {longest} tokens a probability, over the cap of "
            f"{max_tokens}: truncate or split them before"
        )
    return pmf[: longest + 1] / total


def checked_cost(cost: ArrayLike, pmf: Floats) -> Floats:
    """The cost as float64, cut to the shape of ``pmf``; ``cost[0]`` is never used and set to 0.

    Raises :class:`~cpbalance.errors.InputError` if it is too short or not finite.
    """
    cost = np.array(cost, dtype=np.float64)
    if cost.ndim != 1 or cost.size < pmf.size:
        raise InputError(
            f"cost has shape {cost.shape}: give one value for each of 0 … {pmf.size - 1} tokens"
        )
    cost = cost[: pmf.size]
    cost[0] = 0.0
    if not np.isfinite(cost).all():
        worst = int(np.flatnonzero(~np.isfinite(cost))[0])
        raise InputError(f"cost[{worst}] is {cost[worst]}: costs must be finite")
    return cost


def checked_budget(pack_tokens: float, groups: int) -> tuple[int, int]:
    """Token budget of a pack and number of groups of a step, as integers.

    Raises :class:`~cpbalance.errors.InputError` for less than one token or one group, or a budget
    that is no whole number.
    """
    if not pack_tokens >= 1 or pack_tokens != int(pack_tokens):
        raise InputError(f"pack_tokens is {pack_tokens}: give a whole number, at least 1")
    if not groups >= 1 or groups != int(groups):
        raise InputError(f"groups is {groups}: give a whole number, at least 1")
    return int(pack_tokens), int(groups)


def lump_tail(pmf: Floats, tokens: int) -> Floats:
    """The pmf of min(num_tokens, ``tokens``), shape (min(L_max, tokens) + 1,)."""
    if pmf.size <= tokens + 1:
        return pmf
    lumped = pmf[: tokens + 1].copy()
    lumped[tokens] += pmf[tokens + 1 :].sum()
    return lumped


def split_cost(cost: Floats, piece_tokens: int | None) -> Floats:
    """Cost of the first l tokens of a document cut into pieces, same shape as ``cost``.

    With q = l // piece and r = l % piece it is q·h(piece) + h(r). ``None`` means uncut.
    """
    if piece_tokens is None or piece_tokens >= cost.size:
        return cost
    whole, rest = np.divmod(np.arange(cost.size), piece_tokens)
    return whole * cost[piece_tokens] + np.where(rest > 0, cost[rest], 0.0)


def at_least(pmf: Floats) -> Floats:
    """P(num_tokens ≥ l) for l = 0 … L_max, same shape as ``pmf``."""
    return np.cumsum(pmf[::-1])[::-1]
