"""Concat-then-split: the article's packing ("Another View on Context Parallel for LLMs").

The documents of a step are laid end to end and cut at every multiple of the pack's token budget.
A cut document goes on in the next pack as a new segment, so every pack holds exactly its budget.
Each step starts afresh with a new document; what its last document has beyond the step is left
out. Segments are thus the gaps between the union of document ends and pack ends.
"""

import numpy as np
from numpy.typing import NDArray


def concat_split(
    num_tokens: NDArray[np.int64],
    documents_per_step: NDArray[np.int64],
    pack_tokens: int,
    packs_per_step: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Segments of all steps at once: (segments of each pack, segment tokens in order).

    Arguments as in :func:`cpbalance.packing.pack_documents`, which has checked them.
    """
    steps = len(documents_per_step)
    step_tokens = pack_tokens * packs_per_step
    last = np.cumsum(documents_per_step) - 1
    ends = np.cumsum(num_tokens)
    # Put step i at tokens [i·step_tokens, (i+1)·step_tokens) of one axis, and cut what lies beyond.
    before = np.concatenate([[0], ends[last[:-1]]])
    offset = np.arange(steps, dtype=np.int64) * step_tokens
    ends = ends - np.repeat(before - offset, documents_per_step)
    ends = np.minimum(ends, np.repeat(offset + step_tokens, documents_per_step))
    if (np.diff(ends) == 0).any():
        # Documents that start beyond their step: none in a file that the sample stage wrote.
        ends = np.unique(ends)
    cuts = np.arange(1, steps * packs_per_step + 1, dtype=np.int64) * pack_tokens
    place = np.searchsorted(ends, cuts)
    inside = ends[place] != cuts
    # Where each cut stands once those before it that fall inside a document are inserted too.
    last_of_pack = place + np.cumsum(inside) - inside
    ends = np.insert(ends, place[inside], cuts[inside])
    return np.diff(last_of_pack, prepend=-1), np.diff(ends, prepend=0)
