"""Cost of a pack on one rank: a fixed part plus the sum over its segments.

``quadratic`` is the article's Σ L²/CP; ``causal_pairs`` and ``full_pairs`` count the query-key
pairs of one head, L(L+1)/2 and L², shared by CP ranks; ``flops`` are the forward FLOPs of the
q_heads/CP query heads that a rank holds under Ulysses. ``h100-fa3`` and ``calibrated:KERNEL`` are
milliseconds of a forward call with those heads, from published speeds and from a calibration.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpbalance.attention import Attention, attention_pairs, forward_flops, heads_per_rank
from cpbalance.errors import InputError
from cpbalance.kernel_time import KernelTime
from cpbalance.names import CALIBRATED
from cpbalance.presets import PRESETS, preset


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


def _time(name: str, model: KernelTime, attention: Attention, cp_size: int) -> CostModel:
    q_heads, _ = heads_per_rank(attention, cp_size)

    def milliseconds(length: NDArray) -> NDArray[np.float64]:
        dim, causal = attention.head_dim, attention.causal
        return 1e3 * model.segment_seconds(length, q_heads, dim, causal)

    return CostModel(name, "ms", milliseconds, fixed=1e3 * model.fixed)


def cost_model(
    name: str, attention: Attention, cp_size: int, calibration: KernelTime | None = None
) -> CostModel:
    """Build the cost model ``name`` for one rank of a group of ``cp_size`` ranks.

    ``calibration`` is the fitted time that ``calibrated:KERNEL`` stands for. Raises
    :class:`~cpbalance.errors.InputError` for an unknown name, a calibration missing or of no use,
    or a CP degree that the heads do not allow.
    """
    heads_per_rank(attention, cp_size)
    if name.startswith(CALIBRATED):
        if calibration is None:
            raise InputError(f"cost is {name}: give --calibration, a file of cpbalance calibrate")
        return _time(name, calibration, attention, cp_size)
    if calibration is not None:
        raise InputError(f"cost is {name}: --calibration is for {CALIBRATED}KERNEL only")
    if name in PRESETS:
        model = preset(name, attention.head_dim, attention.causal)
        return _time(name, model, attention, cp_size)
    if name == "quadratic" or name == "full_pairs":
        return CostModel(name, "pairs", _shared_pairs(False, cp_size))
    if name == "causal_pairs":
        return CostModel(name, "pairs", _shared_pairs(True, cp_size))
    if name == "flops":
        return CostModel(name, "FLOP", lambda length: forward_flops(length, attention, cp_size))
    raise InputError(f"cost is {name!r}: use one of {', '.join(COSTS)}, {CALIBRATED}KERNEL")


COSTS = ("quadratic", "causal_pairs", "full_pairs", "flops", *PRESETS)
