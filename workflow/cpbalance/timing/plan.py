"""What is called in which order.

Packs of every CP degree and direction are interleaved: each pass calls all that are not settled
yet, in a random order of its own, so that drift of the machine falls on all CP degrees alike. A
sentinel, always the same pack, is called every so often and shows that drift. The order depends
on the seed and the pass alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cpbalance.errors import InputError

PACK, SENTINEL, WARMUP = "pack", "sentinel", "warmup"


@dataclass(frozen=True, order=True)
class Target:
    """One call to be timed: a pack of a CP degree and the direction."""

    cp_size: int
    step: int
    pack: int
    direction: str


@dataclass(frozen=True)
class Method:
    """How a run is led. ``budget_s`` is in seconds of the device's budget clock.

    ``width`` is the width of the 95% interval of a pack's median, over the median, at which the
    pack is settled. The first pass is always made whole; then the budget holds.
    """

    seed: int
    width: float = 0.01
    budget_s: float = 600.0
    max_passes: int = 100
    sentinel_every: int = 32
    warm_cache: bool = False

    def __post_init__(self) -> None:
        for name in ("width", "budget_s"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise InputError(f"{name} is {value}: give a positive number")
        for name in ("max_passes", "sentinel_every"):
            value = getattr(self, name)
            if value < 1:
                raise InputError(f"{name} is {value}: give at least 1")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}: give 0 or more")

    def provenance(self) -> dict[str, Any]:
        """As it stands in the file of timings."""
        return asdict(self)


@dataclass(frozen=True)
class Call:
    """One planned call; ``sweep`` counts the passes from 0."""

    kind: str
    sweep: int
    target: Target


def sweep_calls(
    active: Sequence[Target], sentinel: Target, sweep: int, method: Method
) -> Iterator[Call]:
    """Calls of one pass over the ``active`` targets, the sentinel among them."""
    generator = np.random.default_rng(np.random.SeedSequence([method.seed, sweep]))
    for position, index in enumerate(generator.permutation(len(active))):
        if position % method.sentinel_every == 0:
            yield Call(SENTINEL, sweep, sentinel)
        yield Call(PACK, sweep, active[index])
