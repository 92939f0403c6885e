"""Document lengths: named families and files, sampled step by step, and their exact distribution.

Every step draws documents from its own random stream until they hold one global batch of tokens;
the last one may reach beyond it. A cap either cuts a document off or splits it into consecutive
documents.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cpbalance.config_lengths import Lengths, LengthsFile
from cpbalance.errors import InputError
from cpbalance.lengths.caps import apply_cap
from cpbalance.lengths.families import draw_lengths
from cpbalance.streams import step_generator

Draw = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws the documents of any step of one source.

    ``population`` holds the lengths of a file (int64, none zero), None for a family.
    """

    name: str
    lengths: Lengths
    tokens_per_step: int
    seed: int
    population: NDArray[np.int64] | None = None

    def documents(self, step: int) -> NDArray[np.int64]:
        """Lengths of the documents of one step, int64; all but the last start and end in it."""
        generator = step_generator(self.seed, self.name, step)
        if self.population is None:
            draw: Draw = lambda count: draw_lengths(self.lengths, generator, count)  # noqa: E731
        else:
            order = self.lengths.order
            if order == "as_is":
                return self._in_file_order(step)
            draw = _FILE_DRAWS[order](self.population, generator)
        return self._fill(draw)

    def _fill(self, draw: Draw) -> NDArray[np.int64]:
        """Draw until a step is full and drop the documents that start beyond it."""
        parts: list[NDArray[np.int64]] = []
        total, count = 0, self._first_count
        while total < self.tokens_per_step:
            # What reaches beyond the step is never used: without this, an uncapped heavy tail could
            # split into more pieces than memory holds.
            drawn = np.minimum(draw(count), self.tokens_per_step + self._longest_piece)
            part = apply_cap(drawn, self.lengths.max_seq_len, self.lengths.overlong)
            parts.append(part)
            total += int(part.sum())
            missing = self.tokens_per_step - total
            count = max(16, int(1.1 * count * missing / max(1, total))) if missing > 0 else 0
        documents = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return documents[: int(np.searchsorted(np.cumsum(documents), self.tokens_per_step)) + 1]

    @property
    def _longest_piece(self) -> int:
        return self.lengths.max_seq_len or 0

    @cached_property
    def _first_count(self) -> int:
        """Enough documents for most steps. It decides how many are drawn at once: it is fixed."""
        expected = self.tokens_per_step / self._mean_estimate
        return min(int(expected + 4 * expected**0.5) + 16, self.tokens_per_step)

    @property
    def _mean_estimate(self) -> float:
        cap = self.lengths.max_seq_len or np.iinfo(np.int64).max
        if self.population is not None:
            return float(np.minimum(self.population, cap).mean())
        if self.lengths.family == "mixture":
            weights = np.array([part.weight for part in self.lengths.components])
            means = np.array([part.lengths.mean for part in self.lengths.components])
            mean = float(weights @ means / weights.sum())
        else:
            mean = self.lengths.mean
        return max(1.0, min(mean, cap))

    def _in_file_order(self, step: int) -> NDArray[np.int64]:
        documents, starts = self._file_order
        if step + 1 >= len(starts):
            raise InputError(
                f"lengths {self.name!r}: {self.lengths.file} has {int(documents.sum())} tokens, "
                f"enough for {len(starts) - 1} steps of {self.tokens_per_step} tokens in order "
                f"as_is, and step {step} is wanted; ask for fewer steps, or use order shuffled "
                f"or iid"
            )
        return documents[starts[step] : starts[step + 1]]

    @cached_property
    def _file_order(self) -> tuple[NDArray[np.int64], list[int]]:
        """Documents in file order after the cap, and where each whole step starts and ends."""
        assert self.population is not None
        documents = apply_cap(self.population, self.lengths.max_seq_len, self.lengths.overlong)
        ends = np.cumsum(documents)
        starts = [0]
        while True:
            before = int(ends[starts[-1] - 1]) if starts[-1] else 0
            last = int(np.searchsorted(ends, before + self.tokens_per_step))
            if last >= len(ends):
                return documents, starts
            starts.append(last + 1)


def _iid(population: NDArray[np.int64], generator: np.random.Generator) -> Draw:
    return lambda count: population[generator.integers(0, len(population), count)]


def _shuffled(population: NDArray[np.int64], generator: np.random.Generator) -> Draw:
    """Without replacement; a step that needs more than the file holds starts a new permutation."""
    left = np.empty(0, dtype=np.int64)

    def draw(count: int) -> NDArray[np.int64]:
        nonlocal left
        while len(left) < count:
            left = np.concatenate([left, generator.permutation(population)])
        taken, left = left[:count], left[count:]
        return taken

    return draw


_FILE_DRAWS = {"iid": _iid, "shuffled": _shuffled}


def make_sampler(
    name: str,
    lengths: Lengths,
    tokens_per_gpu: int,
    tokens_per_step: int,
    seed: int,
    population: NDArray[np.int64] | None = None,
) -> Sampler:
    """A sampler of ``lengths``; ``population`` are the file's lengths where it is a file."""
    if isinstance(lengths, LengthsFile) != (population is not None):
        raise ValueError("population goes with a file of lengths, and only with one")
    return Sampler(name, lengths.with_mean(tokens_per_gpu), tokens_per_step, seed, population)
