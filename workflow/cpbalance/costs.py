"""Cost of a pack on one rank: a fixed part plus the sum over its segments.

``quadratic`` is the article's Σ L²/CP; ``causal_pairs`` and ``full_pairs`` count the query-key
pairs of one head, L(L+1)/2 and L², shared by CP ranks; ``flops`` are the forward FLOPs of the
q_heads/CP query heads that a rank holds under Ulysses.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpbalance.attention import Attention, attention_pairs, forward_flops, heads_per_rank
from cpbalance.errors import InputError


@dataclass(frozen=True)
class CostModel:
    """What a pack costs on one rank: ``fixed + segment(segment_tokens).sum()``.

    ``segment`` maps an integer array of segment lengths (tokens) to float64 costs of the same
    shape, in ``unit``. ``fixed`` is paid once a pack, in ``unit``.
    """

    name: str
    unit: str
    segment: Callable[[NDArray], NDArray[np.float64]]
    fixed: float = 0.0


def _shared_pairs(causal: bool, cp_size: int) -> Callable[[NDArray], NDArray[np.float64]]:
    return lambda length: attention_pairs(length, causal) / cp_size


def cost_model(name: str, attention: Attention, cp_size: int) -> CostModel:
    """Build the cost model ``name`` for one rank of a group of ``cp_size`` ranks.

    Raises :class:`~cpbalance.errors.InputError` for an unknown name or a CP degree that the
    heads do not allow.
    """
    heads_per_rank(attention, cp_size)
    if name == "quadratic" or name == "full_pairs":
        return CostModel(name, "pairs", _shared_pairs(False, cp_size))
    if name == "causal_pairs":
        return CostModel(name, "pairs", _shared_pairs(True, cp_size))
    if name == "flops":
        return CostModel(name, "FLOP", lambda length: forward_flops(length, attention, cp_size))
    raise InputError(f"cost is {name!r}: use one of {', '.join(COSTS)}")


COSTS = ("quadratic", "causal_pairs", "full_pairs", "flops")
