"""What a cap on document length does: cut documents off, or split them into consecutive ones."""

import numpy as np
from numpy.typing import NDArray


def apply_cap(
    num_tokens: NDArray[np.int64], max_seq_len: int | None, overlong: str
) -> NDArray[np.int64]:
    """Lengths under the cap, in order; ``split`` conserves tokens, ``truncate`` documents."""
    if max_seq_len is None:
        return num_tokens
    if overlong == "truncate":
        return np.minimum(num_tokens, max_seq_len)
    pieces = -(-num_tokens // max_seq_len)
    out = np.full(int(pieces.sum()), max_seq_len, dtype=np.int64)
    out[np.cumsum(pieces) - 1] = num_tokens - (pieces - 1) * max_seq_len
    return out
