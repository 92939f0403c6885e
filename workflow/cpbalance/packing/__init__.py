"""Packing: how the documents of one step become the packs of its data-parallel groups.

A policy takes the documents of some steps and returns their segments. All policies share one
signature, :data:`Policy`; each stands in a module of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpbalance.errors import InputError
from cpbalance.packing.concat_split import concat_split


@dataclass(frozen=True)
class Segments:
    """Segments of several steps, sorted by step, then pack, in the order they are computed.

    ``step`` counts from 0 within the steps that were packed; ``pack`` within its step;
    ``segment_tokens`` are at least 1. All three are integer arrays of one length.
    """

    step: NDArray[np.int32]
    pack: NDArray[np.int32]
    segment_tokens: NDArray[np.int32]


# (documents of all steps in order [int64, tokens], documents per step [int64], tokens of one pack,
#  packs of one step) -> (segments of each pack, step after step [int64], segment tokens [int64])
Policy = Callable[
    [NDArray[np.int64], NDArray[np.int64], int, int], tuple[NDArray[np.int64], NDArray[np.int64]]
]

POLICIES: dict[str, Policy] = {"concat_split": concat_split}


def pack_documents(
    policy: str,
    num_tokens: NDArray[np.int64],
    documents_per_step: NDArray[np.int64],
    pack_tokens: int,
    packs_per_step: int,
) -> Segments:
    """Pack the documents of several steps; each step fills ``packs_per_step`` packs.

    ``num_tokens`` are the lengths of all documents, step after step, ``documents_per_step`` how
    many belong to each. Raises :class:`~cpbalance.errors.InputError` where a step's documents hold
    fewer tokens than its packs.
    """
    if policy not in POLICIES:
        raise InputError(f"packing is {policy!r}: use one of {', '.join(POLICIES)}")
    if len(num_tokens) and num_tokens.min() < 1:
        raise InputError(f"a document has {num_tokens.min()} tokens; at least 1 is needed")
    held = np.add.reduceat(num_tokens, np.cumsum(documents_per_step) - documents_per_step)
    if len(short := np.flatnonzero(held < pack_tokens * packs_per_step)):
        raise InputError(
            f"step {short[0]} has {held[short[0]]} tokens, its packs need "
            f"{pack_tokens * packs_per_step}; sample lengths for this cluster"
        )
    segments_per_pack, segment_tokens = POLICIES[policy](
        num_tokens, documents_per_step, pack_tokens, packs_per_step
    )
    steps = len(documents_per_step)
    step = np.repeat(np.arange(steps, dtype=np.int32), packs_per_step)
    pack = np.tile(np.arange(packs_per_step, dtype=np.int32), steps)
    return Segments(
        np.repeat(step, segments_per_pack),
        np.repeat(pack, segments_per_pack),
        segment_tokens.astype(np.int32),
    )
