"""Level 4: the whole distribution of the cost of a pack.

The renewal step of level 3 holds for the characteristic function φ_b(ω) = E[e^{iω·cost}]:

φ_b(ω) = Σ_{l<b} p(l)·e^{iω·h(l)}·φ_{b−l}(ω) + P(L ≥ b)·e^{iω·h(b)}, then the first run.

As a power series in z it is solved by a division: φ(z) = τ(z)/(1 − q(z)), with q the terms of
p·e^{iωh} and τ those of P(L ≥ b)·e^{iωh(b)}. The coefficient of z^B is read off a circle of radius
below 1 by FFT (Abate and Whitt 1992: what wraps around is damped by radiusᴺ), one row a
frequency, and only as many frequencies as φ needs to die away. The inverse FFT gives the density.

Lengths are coarse-grained to cells of a pack's length over n: each length's probability is split
linearly between its two neighbouring grid points, which keeps the mean length, and its cost is
taken along, which keeps the mean cost. What is left of the error is seen in the exact moments.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cpbalance.theory.lengths import Floats, at_least
from cpbalance.theory.stream import Run

VALUE_POINTS = 4096
MAX_FREQUENCIES = 1024
# Where |φ| has fallen to this, further frequencies change nothing that is reported.
NEGLIGIBLE = 1e-7
# Frequencies that have not died away at the last one are damped to this, by a Gaussian.
DAMPED_TO = 1e-6
# Aliasing of the circle and rounding amplified by it are both about this.
CIRCLE_ERROR = 1e-10
CHUNK_POINTS = 1 << 19


@dataclass(frozen=True)
class Grained:
    """Runs on the coarse grid: ``mass[i]`` for i cells, which cost ``cost[i]`` when complete.

    ``beyond[i]`` = P(run ≥ i cells), ``cut[i]`` the cost of a run cut off after i cells; all for
    i up to the cells of a pack.
    """

    mass: Floats
    cost: Floats
    beyond: Floats
    cut: Floats


def coarse_grain(pmf: Floats, cost: Floats, pack_tokens: int, cells: int) -> Grained:
    """Split lengths 0 … L_max (tokens) linearly between multiples of ``pack_tokens/cells``."""
    cell = pack_tokens / cells
    used = np.flatnonzero(pmf)
    left, right_share = np.divmod(used / cell, 1)
    left = left.astype(np.int64)
    size = int(left[-1]) + 2
    weights = np.concatenate([pmf[used] * (1 - right_share), pmf[used] * right_share])
    places = np.concatenate([left, left + 1])
    mass = np.bincount(places, weights, size)
    paid = np.bincount(places, weights * np.tile(cost[used], 2), size)
    mean_cost = np.divide(paid, mass, out=np.zeros(size), where=mass > 0)
    kept = slice(min(size, cells + 1))
    cut = np.interp(np.arange(size)[kept] * cell, np.arange(cost.size), cost)
    return Grained(mass[kept], mean_cost[kept], at_least(mass)[kept], cut)


def characteristic_functions(
    starts: list[list[Run]],
    documents: tuple[Floats, Floats],
    pack_tokens: int,
    cells: int,
    spacing: float,
    most: int = MAX_FREQUENCIES,
) -> tuple[np.ndarray, Floats]:
    """φ of a pack for each of ``starts``, without the atom of packs that one run fills.

    ``documents``: pmf and cost of whole documents, both of shape (L_max + 1,); ``cells``: n, the
    cells of a pack; ``spacing``: Δω; ``most`` frequencies. Returns φ at ω = 0, Δω, …, shape
    (starts, frequencies), and the probability of each start's atom, shape (starts,).
    """
    document_pmf, document_cost = documents

    def grain(pmf: Floats, cost: Floats) -> Grained:
        return coarse_grain(pmf, cost[: pmf.size], pack_tokens, cells)

    document = grain(document_pmf, document_cost)
    grained = [
        [
            (
                grain(run.first, run.cost),
                None if run.rest is None else grain(run.rest, document_cost),
            )
            for run in runs
        ]
        for runs in starts
    ]
    atoms = np.array(
        [sum(_at(first.beyond, cells) for first, _ in runs) for runs in grained], dtype=float
    )
    circle = _Circle(cells)
    columns = []
    for omega in _frequency_chunks(spacing, circle.size, most):
        phi = _solve(circle, omega, document, grained)
        columns.append(phi)
        if np.abs(phi).max(axis=0)[-max(1, phi.shape[1] // 2) :].max() < NEGLIGIBLE:
            break
    return np.concatenate(columns, axis=1), atoms


class _Circle:
    """Power series in z by their values on |z| = radius, to read off the coefficient of zⁿ."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.size = 1 << (2 * cells - 1).bit_length()
        self.radius = CIRCLE_ERROR ** (1 / self.size)
        turn = np.exp(2j * np.pi * np.arange(self.size) * cells / self.size)
        self.read = turn / (self.size * self.radius**cells)

    def values(self, terms: np.ndarray) -> np.ndarray:
        """Values of series with ``terms``, shape (rows, at most n + 1)."""
        return np.fft.fft(terms * self.radius ** np.arange(terms.shape[1]), self.size, axis=1)


def _frequency_chunks(spacing: float, circle_size: int, most: int) -> Iterator[Floats]:
    chunk = int(np.clip(CHUNK_POINTS // circle_size, 8, 128))
    for begin in range(0, most, chunk):
        yield spacing * np.arange(begin, min(begin + chunk, most))


def _solve(
    circle: _Circle,
    omega: Floats,
    document: Grained,
    starts: list[list[tuple[Grained, Grained | None]]],
) -> np.ndarray:
    """φ without its atom, shape (starts, frequencies)."""
    complete = circle.values(_phases(omega, document.mass, document.cost))
    boundary = circle.values(_phases(omega, document.beyond, document.cut, skip_first=True))
    boundary /= 1 - complete  # φ of tokens that begin at a document boundary
    phi = np.empty((len(starts), omega.size), dtype=complex)
    for index, runs in enumerate(starts):
        total = np.zeros((omega.size, circle.size), dtype=complex)
        for first, rest in runs:
            following = boundary
            if rest is not None:
                following = circle.values(_phases(omega, rest.mass, rest.cost)) * boundary
                following += circle.values(_phases(omega, rest.beyond, rest.cut, skip_first=True))
            total += circle.values(_phases(omega, first.mass, first.cost)) * following
        phi[index] = total @ circle.read
    return phi


def _phases(omega: Floats, mass: Floats, cost: Floats, skip_first: bool = False) -> np.ndarray:
    terms = mass * np.exp(1j * np.outer(omega, cost))
    if skip_first:
        terms[:, 0] = 0.0
    return terms


def _at(values: Floats, index: int) -> float:
    return float(values[index]) if index < values.size else 0.0


def invert(phi: np.ndarray, low: float, width: float, most: int = MAX_FREQUENCIES) -> Floats:
    """Masses at ``VALUE_POINTS`` points from ``low`` on, ``width`` in all, shape (starts, n).

    φ at ω = 2πk/width, shape (starts, frequencies). ``most``: as it was for φ.
    What lies beyond the window is folded into it.
    """
    count = phi.shape[1]
    omega = 2 * np.pi / width * np.arange(count)
    if count == most:  # it has not died away
        ratio = np.arange(count) / (count - 1)
        phi = phi * np.exp(np.log(DAMPED_TO) * ratio**2)
    turned = np.conj(phi * np.exp(-1j * omega * low))
    return np.fft.irfft(turned, VALUE_POINTS, axis=1)
