"""Attention work of a segment and how heads are shared among the ranks of one CP group.

One head of a causal segment of L tokens computes L(L+1)/2 query-key pairs, of a full one L².
The forward pass costs 4·head_dim FLOPs a pair and query head (two matrix products, a multiply
and an add each), the backward pass 2.5 times that (FlashAttention-2, arXiv:2307.08691, §4.1).
Under Ulysses (arXiv:2309.14509) each of the CP ranks holds q_heads/CP query heads of the whole
pack, and kv_heads/CP key-value heads, replicated once CP exceeds kv_heads.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cpbalance.errors import InputError

FORWARD_FLOPS_PER_PAIR_AND_DIM = 4
BACKWARD_OVER_FORWARD = 2.5


@dataclass(frozen=True)
class Attention:
    """Shape of one attention layer, before context parallelism shares out its heads.

    Raises :class:`~cpbalance.errors.InputError` when the heads do not form groups.
    """

    q_heads: int
    kv_heads: int
    head_dim: int
    causal: bool
    dtype: str = "bfloat16"

    def __post_init__(self) -> None:
        for name in ("q_heads", "kv_heads", "head_dim"):
            value = getattr(self, name)
            if value < 1:
                raise InputError(f"{name} is {value}: give at least 1")
        if self.q_heads % self.kv_heads:
            raise InputError(
                f"kv_heads is {self.kv_heads}: it must divide q_heads ({self.q_heads})"
            )


def attention_pairs(num_tokens: ArrayLike, causal: bool) -> NDArray[np.int64]:
    """Query-key pairs one head computes for segments of ``num_tokens`` tokens, any shape."""
    length = np.asarray(num_tokens, dtype=np.int64)
    return length * (length + 1) // 2 if causal else length * length


def heads_per_rank(attention: Attention, cp_size: int) -> tuple[int, int]:
    """Query and key-value heads that one rank of a Ulysses group of ``cp_size`` holds.

    Raises :class:`~cpbalance.errors.InputError` where ``cp_size`` does not divide the query
    heads, or neither divides the key-value heads nor is a multiple of them.
    """
    q_heads, kv_heads = attention.q_heads, attention.kv_heads
    if cp_size < 1 or q_heads % cp_size:
        divisors = [d for d in range(1, q_heads + 1) if q_heads % d == 0]
        raise InputError(
            f"cp_size is {cp_size}: it must divide q_heads ({q_heads}); use one of {divisors}"
        )
    if kv_heads % cp_size and cp_size % kv_heads:
        raise InputError(
            f"cp_size is {cp_size}: it must divide kv_heads ({kv_heads}) or be a multiple of it"
        )
    return q_heads // cp_size, max(1, kv_heads // cp_size)


def forward_flops(
    num_tokens: ArrayLike, attention: Attention, cp_size: int = 1
) -> NDArray[np.float64]:
    """Forward FLOPs of segments on one rank of a Ulysses group, same shape as ``num_tokens``."""
    q_heads, _ = heads_per_rank(attention, cp_size)
    scale = FORWARD_FLOPS_PER_PAIR_AND_DIM * attention.head_dim * q_heads
    return scale * attention_pairs(num_tokens, attention.causal).astype(np.float64)
