"""Level 4, from characteristic functions to laws: windows, atoms, tails and exact moments.

The inverse transform gives a density on a window of costs and folds into it what lies beyond. A
first window holds everything; where most of it is the tail of a few very long documents, a second
one holds the bulk, less the folded tail, which the first one knows. Packs that one run fills are
an atom of known place and size. Last, each law is moved and stretched to its exact mean and
variance (level 3), by far less than a thousandth unless the grid was too coarse.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cpbalance.theory.distribution import (
    MAX_FREQUENCIES,
    VALUE_POINTS,
    characteristic_functions,
    invert,
)
from cpbalance.theory.iid import Moments
from cpbalance.theory.lengths import Floats
from cpbalance.theory.stream import Run

# Masses below this are rounding, not tails.
NOISE = 1e-9
# A law whose middle half covers fewer points than this gets a window for its bulk: what is below
# the first of these quantiles that needs no more than this share of the first window.
COARSE, BULKS, NARROW = 64, (0.99, 0.95, 0.9, 0.8, 0.6), 0.25
# Laws more skewed than this are mostly tail, for which fewer frequencies do.
TAILED, TAIL_FREQUENCIES = 8.0, 256


@dataclass(frozen=True)
class Window:
    """Costs from ``low`` on, ``width`` in all, at ``VALUE_POINTS`` points."""

    low: float
    width: float

    @property
    def values(self) -> Floats:
        """The points."""
        return self.low + self.width / VALUE_POINTS * np.arange(VALUE_POINTS)

    @property
    def edges(self) -> Floats:
        """Ends of the cells around the points."""
        return self.low + self.width / VALUE_POINTS * (np.arange(VALUE_POINTS + 1) - 0.5)


def pack_laws(
    starts: list[list[Run]],
    documents: tuple[Floats, Floats],
    pack_tokens: int,
    cells: int,
    exact: Sequence[Moments],
) -> tuple[Floats, Floats]:
    """Laws of the cost of a pack for each of ``starts``, moved and stretched to exact moments.

    ``exact``: moments of level 3, one a start; other arguments as those of
    :func:`~cpbalance.theory.distribution.characteristic_functions`. Returns increasing costs (n,)
    and the masses (starts, n), each summing to 1.
    """
    cost = documents[1][: pack_tokens + 1]
    per_token = cost[1:] / np.arange(1, cost.size)
    # Whatever the segments, their cost per token lies between the least and the largest.
    support = float(pack_tokens * per_token.min()), float(pack_tokens * per_token.max())
    low = min(m.mean - 8 * m.variance**0.5 for m in exact)
    high = max(m.mean + (9 + 4 * max(m.skewness, 0)) * m.variance**0.5 for m in exact)
    if low == high:
        return np.array([low]), np.ones((len(starts), 1))
    window = _with_room(max(low, support[0]), min(high, support[1]))

    def masses_in(window: Window, most: int) -> tuple[Floats, Floats]:
        phi, atoms = characteristic_functions(
            starts, documents, pack_tokens, cells, 2 * np.pi / window.width, most
        )
        return invert(phi, window.low, window.width, most), atoms

    tailed = max(m.skewness for m in exact) > TAILED
    masses, atoms = masses_in(window, TAIL_FREQUENCIES if tailed else MAX_FREQUENCIES)
    masses = _scaled(masses, 1 - atoms)
    values, edges = window.values, window.edges
    bulk = _bulk_window(window, masses)
    if bulk is not None:
        inner = _less_folded(masses_in(bulk, MAX_FREQUENCIES)[0], bulk, window, masses)
        values, edges, masses = _joined(bulk, inner, window, masses)
        masses = _scaled(masses, 1 - atoms)
    filled = float(documents[1][min(pack_tokens, documents[1].size - 1)])
    for index, moments in enumerate(exact):
        law = _within(values, _with_atom(masses[index], values, atoms[index], filled), support)
        masses[index] = _within(values, _matched(values, edges, law, moments), support)
    return values, masses


def _with_room(low: float, high: float) -> Window:
    """A window with some room on both sides for the density to die away."""
    room = 0.03 * (high - low)
    return Window(low - room, high - low + 2 * room)


def _scaled(masses: Floats, totals: Floats) -> Floats:
    """Masses without rounding noise, each law summing to its total."""
    masses = np.where(masses < NOISE, 0.0, masses)
    sums = masses.sum(axis=1)
    return masses * (totals / np.where(sums > 0, sums, 1.0))[:, None]


def _bulk_window(window: Window, masses: Floats) -> Window | None:
    """From the lower end to beyond the bulk of every law; None where one window does."""
    laws = [np.cumsum(mass) / mass.sum() for mass in masses if mass.any()]

    def point(quantile: float) -> int:
        return max((int(np.searchsorted(law, quantile)) for law in laws), default=0)

    if not laws or min(np.diff(np.searchsorted(law, [0.25, 0.75]))[0] for law in laws) > COARSE:
        return None
    for quantile in BULKS:
        # A cell more, as the bulk may be no wider than one.
        high = window.edges[min(point(quantile) + 2, VALUE_POINTS)]
        if (width := 1.3 * (high - window.low)) < NARROW * window.width:
            return Window(window.low, width)
    return None


def _less_folded(inner: Floats, bulk: Window, window: Window, masses: Floats) -> Floats:
    """The bulk's masses less the tail beyond its window, that the transform folded into it."""
    inner = inner.copy()
    for index, mass in enumerate(masses):
        below = np.append(0.0, np.cumsum(mass))
        turns = int(np.ceil((window.low + window.width - bulk.low) / bulk.width))
        for turn in range(1, turns):
            edges = bulk.edges + turn * bulk.width
            inner[index] -= np.diff(np.interp(edges, window.edges, below))
    return inner


def _joined(
    bulk: Window, inner: Floats, window: Window, masses: Floats
) -> tuple[Floats, Floats, Floats]:
    """Values, edges and masses of the bulk, and of the first window beyond it."""
    end = bulk.edges[-1]
    beyond = window.edges[:-1] >= end
    first = int(beyond.argmax())
    edges = np.concatenate([bulk.edges, window.edges[first + 1 :]])
    between = (edges[VALUE_POINTS:-1] + edges[VALUE_POINTS + 1 :]) / 2
    values = np.concatenate([bulk.values, between])
    outer = np.empty((len(masses), window.edges.size - 1 - first))
    for index, mass in enumerate(masses):
        below = np.append(0.0, np.cumsum(mass))
        outer[index] = np.diff(np.interp(edges[VALUE_POINTS:], window.edges, below))
    inner = _scaled(inner, masses.sum(axis=1) - outer.sum(axis=1))
    return values, edges, np.concatenate([inner, outer], axis=1)


def _with_atom(mass: Floats, values: Floats, atom: float, place: float) -> Floats:
    """The law with ``atom`` shared by the two points around ``place``."""
    mass = mass.copy()
    if atom:
        left = int(np.clip(np.searchsorted(values, place) - 1, 0, values.size - 2))
        share = (place - values[left]) / (values[left + 1] - values[left])
        share = float(np.clip(share, 0, 1))
        mass[left] += atom * (1 - share)
        mass[left + 1] += atom * share
    return mass


def _within(values: Floats, mass: Floats, support: tuple[float, float]) -> Floats:
    """Put what smoothing has moved beyond the possible costs back at their ends."""
    last = values.size - 1
    low = min(int(np.searchsorted(values, support[0])), last)
    high = max(int(np.searchsorted(values, support[1], side="right")) - 1, low)
    kept = np.zeros_like(mass)
    kept[low : high + 1] = mass[low : high + 1]
    kept[low] += mass[:low].sum()
    kept[high] += mass[high + 1 :].sum()
    return kept / kept.sum()


def _matched(values: Floats, edges: Floats, mass: Floats, exact: Moments) -> Floats:
    """Move and stretch a law to the exact mean and variance."""
    mean = float(mass @ values)
    deviation = float(np.sqrt(mass @ (values - mean) ** 2))
    target = exact.variance**0.5
    spacing = float(np.diff(edges).min())
    if target < spacing or deviation < spacing:
        return _with_atom(np.zeros_like(mass), values, 1.0, exact.mean)
    below = np.append(0.0, np.cumsum(mass))
    source = mean + (edges - exact.mean) * deviation / target
    source[[0, -1]] = edges[[0, -1]]  # nothing is lost at the ends
    return np.diff(np.interp(source, edges, below))
