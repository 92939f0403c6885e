"""Fits a kernel's time to measured calls, and says how far to trust the fit.

The model is that of :mod:`cpbalance.kernel_time`: fixed + per segment + per token + per FLOP of
whole tiles, with coefficients of at least zero. Relative errors are minimised (a call of 1 ms off
by 1% counts as much as one of 100 ms), by non-negative least squares.

Models with fewer terms and with other tiles compete by the squared error on packs held out. The
smallest that is as good as the best is taken: one whose errors exceed the best one's, pack by pack,
by no more than a standard error of the difference (the one-standard-error rule of Hastie et al.,
The Elements of Statistical Learning, §7.10, paired). The errors reported are of packs held out from
that choice too: the choice is made again without them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpbalance.errors import InputError
from cpbalance.kernel_time import TERMS, KernelTime
from cpbalance.tiles import EXACT, Tile, tile_pairs

UNITS = {
    "fixed": "s",
    "segment": "s a segment (and query head, but for kernels called segment by segment)",
    "token": "s a token and query head",
    "flop": "s a FLOP of whole tiles",
}
FOLDS = 10
# A coefficient is spared if the model without it is as good; flop is what attention is about.
TERM_SETS = tuple(
    (*extra, "flop")
    for count in range(4)
    for extra in combinations(("fixed", "segment", "token"), count)
)


@dataclass(frozen=True)
class Calls:
    """Measured calls. ``segments[i]`` are the lengths of call i, the rest is one value a call.

    ``pack`` says which calls share a pack; they are held out together. ``seconds`` are medians.
    """

    segments: Sequence[NDArray[np.int64]]
    q_heads: NDArray[np.int64]
    seconds: NDArray[np.float64]
    pack: NDArray[np.int64]
    head_dim: int
    causal: bool
    segment_loop: bool = False

    def __len__(self) -> int:
        return len(self.seconds)


def predicted_seconds(model: KernelTime, calls: Calls) -> NDArray[np.float64]:
    """Seconds of every call, as the model has them."""
    weights = np.array([model.coefficients.get(term, 0.0) for term in TERMS])
    return Features(calls).columns(model.tile) @ weights


class Features:
    """Columns of the linear model, a row a call, in the order of :data:`TERMS`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._bounds = np.cumsum([0, *(len(s) for s in calls.segments)])
        self._lengths = np.concatenate(list(calls.segments))
        counts = np.diff(self._bounds)
        heads = calls.q_heads
        self._fixed = np.column_stack(
            [
                np.ones(len(calls)),
                counts * (1 if calls.segment_loop else heads),
                np.add.reduceat(self._lengths, self._bounds[:-1]) * heads,
            ]
        ).astype(np.float64)

    def columns(self, tile: Tile) -> NDArray[np.float64]:
        """The columns for one tile, (calls, 4)."""
        calls = self._calls
        distinct, index = np.unique(self._lengths, return_inverse=True)
        pairs = tile_pairs(distinct, tile, calls.causal)[index]
        flops = 4 * calls.head_dim * calls.q_heads * np.add.reduceat(pairs, self._bounds[:-1])
        return np.column_stack([self._fixed, flops])


def nonnegative_least_squares(gram: NDArray, moment: NDArray) -> NDArray[np.float64]:
    """Minimiser x ≥ 0 of xᵀ·gram·x − 2·momentᵀx, for a handful of unknowns.

    The solution is the unconstrained one on its own support, so all supports are tried.
    """
    count, best, lowest = len(moment), np.zeros(len(moment)), 0.0
    for size in range(1, count + 1):
        for support in combinations(range(count), size):
            part = list(support)
            try:
                x = np.linalg.solve(gram[np.ix_(part, part)], moment[part])
            except np.linalg.LinAlgError:
                continue
            value = -float(moment[part] @ x)
            if (x >= 0).all() and value < lowest - 1e-12 * abs(lowest):
                best, lowest = np.zeros(count), value
                best[part] = x
    return best


class Fitter:
    """Fits candidates to subsets of the calls, from sums made once a pack."""

    def __init__(self, calls: Calls, tiles: Sequence[Tile]) -> None:
        if len(calls) == 0 or not (calls.seconds > 0).all():
            raise InputError("calibration needs calls, each of more than 0 s; time some packs")
        self.calls, self.tiles = calls, tuple(tiles)
        self.packs, self._of_call = np.unique(calls.pack, return_inverse=True)
        self._counts = np.bincount(self._of_call)
        features = Features(calls)
        self._rows: dict[Tile, NDArray] = {}
        self._grams: dict[Tile, NDArray] = {}
        self._moments: dict[Tile, NDArray] = {}
        self._scale: dict[Tile, NDArray] = {}
        for tile in self.tiles:
            rows = features.columns(tile) / calls.seconds[:, None]
            scale = np.linalg.norm(rows, axis=0)
            self._rows[tile] = rows
            scaled = rows / scale
            outer = scaled[:, :, None] * scaled[:, None, :]
            self._grams[tile] = _sum_by(self._of_call, outer, len(self.packs))
            self._moments[tile] = _sum_by(self._of_call, scaled, len(self.packs))
            self._scale[tile] = scale

    def fit(self, tile: Tile, terms: Sequence[str], train: NDArray[np.bool_]) -> NDArray:
        """Coefficients in the order of :data:`TERMS`, from the packs that ``train`` marks."""
        index = [TERMS.index(term) for term in terms]
        gram = self._grams[tile][train].sum(axis=0)[np.ix_(index, index)]
        moment = self._moments[tile][train].sum(axis=0)[index]
        coefficients = np.zeros(len(TERMS))
        coefficients[index] = nonnegative_least_squares(gram, moment) / self._scale[tile][index]
        return coefficients

    def errors(self, tile: Tile, coefficients: NDArray) -> NDArray[np.float64]:
        """Relative error, predicted over measured less one, of every call."""
        return self._rows[tile] @ coefficients - 1

    def held_out(
        self,
        tile: Tile,
        terms: Sequence[str],
        among: NDArray[np.bool_],
        folds: Sequence[NDArray[np.bool_]],
    ) -> NDArray[np.float64]:
        """Mean squared error of every pack of ``among``, predicted by a fit without its fold."""
        squares = np.zeros(len(self.packs))
        for held in folds:
            errors = self.errors(tile, self.fit(tile, terms, among & ~held))
            squares[held] = _sum_by(self._of_call, errors**2, len(self.packs))[held]
        return squares[among] / self._counts[among]

    def calls_of(self, packs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which calls belong to the packs that ``packs`` marks."""
        return packs[self._of_call]

    def folds(self, among: NDArray[np.bool_], count: int = FOLDS) -> list[NDArray[np.bool_]]:
        """Packs held out together: the packs by time, dealt out in turn."""
        totals = _sum_by(self._of_call, self.calls.seconds, len(self.packs))
        order = [p for p in np.argsort(totals, kind="stable") if among[p]]
        held = []
        for fold in range(min(count, len(order))):
            mask = np.zeros(len(self.packs), dtype=bool)
            mask[order[fold :: min(count, len(order))]] = True
            held.append(mask)
        return held


def _sum_by(index: NDArray, values: NDArray, count: int) -> NDArray[np.float64]:
    if values.ndim == 1:
        return np.bincount(index, weights=values, minlength=count)
    total = np.zeros((count, *values.shape[1:]))
    np.add.at(total, index, values)
    return total


@dataclass(frozen=True)
class Candidate:
    """A tile and a set of terms, and their mean squared relative error on every held-out pack."""

    tile: Tile
    terms: tuple[str, ...]
    errors: NDArray[np.float64]

    @property
    def error(self) -> float:
        """Root mean square of the relative error on held-out packs."""
        return float(self.errors.mean()) ** 0.5


def candidates(fitter: Fitter, among: NDArray[np.bool_]) -> list[Candidate]:
    """Every tile and set of terms, each pack of ``among`` predicted without it."""
    folds = fitter.folds(among)
    return [
        Candidate(tile, terms, fitter.held_out(tile, terms, among, folds))
        for tile in fitter.tiles
        for terms in TERM_SETS
    ]


def choose(found: Sequence[Candidate], known: Tile | None) -> Candidate:
    """The smallest candidate as good as the best; among equals the known tile, then the best."""
    best = min(found, key=lambda c: c.error)

    def as_good(candidate: Candidate) -> bool:
        excess = candidate.errors - best.errors
        return bool(excess.mean() <= excess.std(ddof=1) / len(excess) ** 0.5)

    good = [c for c in found if as_good(c)]
    return min(good, key=lambda c: (len(c.terms), c.tile != known, c.error))


def as_model(fitter: Fitter, candidate: Candidate, train: NDArray[np.bool_]) -> KernelTime:
    """The candidate fitted to the packs that ``train`` marks."""
    coefficients = fitter.fit(candidate.tile, candidate.terms, train)
    named = dict(zip(TERMS, coefficients.tolist(), strict=True))
    return KernelTime(
        {term: named[term] for term in candidate.terms},
        candidate.tile,
        fitter.calls.segment_loop,
    )


@dataclass(frozen=True)
class Calibration:
    """The chosen model, and its relative errors on packs held out from choice and fit."""

    model: KernelTime
    candidate: Candidate
    known: Tile | None
    held_out: NDArray[np.float64]
    quadratic: NDArray[np.float64]
    found: list[Candidate]

    @property
    def median_error(self) -> float:
        """Median absolute relative error on held-out packs."""
        return float(np.median(np.abs(self.held_out)))

    @property
    def worst_error(self) -> float:
        """Largest absolute relative error on held-out packs."""
        return float(np.abs(self.held_out).max())


def calibrate(calls: Calls, tiles: Sequence[Tile], known: Tile | None) -> Calibration:
    """Choose and fit the model; errors by packs held out from both.

    Raises :class:`~cpbalance.errors.InputError` with fewer than 6 packs.
    """
    fitter = Fitter(calls, tiles)
    count = len(fitter.packs)
    if count < 6:
        raise InputError(f"calibration has {count} packs: it needs at least 6; time more steps")
    everything = np.ones(count, dtype=bool)
    held_out, quadratic = np.zeros(len(calls)), np.zeros(len(calls))
    exact = fitter if EXACT in fitter.tiles else Fitter(calls, [EXACT])
    for held in fitter.folds(everything):
        inside = fitter.calls_of(held)
        chosen = choose(candidates(fitter, ~held), known)
        coefficients = fitter.fit(chosen.tile, chosen.terms, ~held)
        held_out[inside] = fitter.errors(chosen.tile, coefficients)[inside]
        only_pairs = exact.fit(EXACT, ("flop",), ~held)
        quadratic[inside] = exact.errors(EXACT, only_pairs)[inside]
    found = candidates(fitter, everything)
    chosen = choose(found, known)
    return Calibration(
        as_model(fitter, chosen, everything), chosen, known, held_out, quadratic, found
    )


def r_squared(measured: NDArray, predicted: NDArray) -> float:
    """Share of the variance of ``measured`` that ``predicted`` explains."""
    residual = float(np.square(measured - predicted).sum())
    return 1 - residual / float(np.square(measured - measured.mean()).sum())


def validity(calls: Calls) -> dict[str, Any]:
    """Range of what was measured; beyond it a prediction extrapolates."""
    lengths = np.concatenate(list(calls.segments))
    tokens = np.array([int(s.sum()) for s in calls.segments])
    counts = np.array([len(s) for s in calls.segments])
    return {
        "segment_tokens": [int(lengths.min()), int(lengths.max())],
        "pack_tokens": [int(tokens.min()), int(tokens.max())],
        "segments": [int(counts.min()), int(counts.max())],
        "q_heads": [int(calls.q_heads.min()), int(calls.q_heads.max())],
        "seconds": [float(calls.seconds.min()), float(calls.seconds.max())],
    }
