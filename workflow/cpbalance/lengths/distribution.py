"""The exact distribution of document lengths that a source draws from, as a mass function."""

import numpy as np
from numpy.typing import NDArray

from cpbalance.config_lengths import Lengths, LengthsFile
from cpbalance.lengths.families import family_pmf


def length_pmf(
    lengths: Lengths, longest: int, population: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """P(L = l) of whole documents, float64, for l = 0 … ``longest`` (under ``truncate``, the cap).

    Lengths in tokens; mass above the last entry sits on it. With ``overlong: split`` or without a
    cap documents are not cut, so ``longest`` says beyond which length the caller no longer tells
    documents apart. ``population`` are the lengths of a file (any order policy: the marginal
    distribution is the file's histogram). The mean of a family must be in tokens.
    """
    if lengths.max_seq_len is not None and lengths.overlong == "truncate":
        longest = min(longest, lengths.max_seq_len)
    if isinstance(lengths, LengthsFile):
        if population is None:
            raise ValueError("a file's distribution needs its population")
        counts = np.bincount(np.minimum(population, longest), minlength=longest + 1)
        return counts / counts.sum()
    return family_pmf(lengths, longest)
