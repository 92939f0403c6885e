"""The article's recipe as plain Python loops: the oracle of the tests, the yardstick of the bench.

Written from its description: lengths are drawn one by one, clipped and rounded down; documents are
laid end to end into batches, and what does not fit opens the next batch; a batch costs the sum of
the squares of its pieces, shared by CP ranks.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np


def draws(sample: Callable[[], float], shortest: int, longest: int) -> Iterator[int]:
    """Endless document lengths, one at a time."""
    while True:
        yield int(np.clip(sample(), shortest, longest))


def fill_batches(documents: Iterable[int], batch_tokens: int, batches: int) -> list[list[int]]:
    """Pieces of documents in each of ``batches`` batches of ``batch_tokens`` tokens."""
    stream = iter(documents)
    filled: list[list[int]] = []
    left = 0
    for _ in range(batches):
        batch: list[int] = []
        room = batch_tokens
        while room > 0:
            if left == 0:
                left = next(stream)
            piece = min(left, room)
            batch.append(piece)
            left -= piece
            room -= piece
        filled.append(batch)
    return filled


def batch_cost(batch: list[int], cp_size: int) -> float:
    """Σ L²/CP of one batch."""
    total = 0
    for piece in batch:
        total += piece * piece
    return total / cp_size


def step_costs(
    documents: Iterable[int], world_size: int, cp_size: int, tokens_per_gpu: int
) -> list[float]:
    """Costs of all packs of one step."""
    batches = fill_batches(documents, cp_size * tokens_per_gpu, world_size // cp_size)
    return [batch_cost(batch, cp_size) for batch in batches]
