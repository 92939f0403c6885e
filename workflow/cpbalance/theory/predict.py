"""All four levels at once, for every CP degree of one length distribution.

A step of G packs is one stream: its first pack starts at a document boundary, the others inside
documents. Moments pool all packs; extremes take the first pack's law once and the others' G − 1
times, as if packs were independent (neighbours share a document, and their correlation is given).
What is exact and what is not: ``docs/theory.md``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cpbalance.errors import InputError
from cpbalance.theory.extremes import Extremes, PackLaw, expected_extremes, normal_extremes
from cpbalance.theory.fits import gamma_extremes
from cpbalance.theory.iid import Moments, iid_moments, moments_of
from cpbalance.theory.laws import pack_laws
from cpbalance.theory.lengths import (
    Floats,
    checked_budget,
    checked_cost,
    checked_pmf,
    lump_tail,
    split_cost,
)
from cpbalance.theory.moments import (
    Curves,
    central,
    cost_curves,
    neighbour_correlation,
    raw_moments,
)
from cpbalance.theory.renewal import renewal_moments
from cpbalance.theory.stream import Renewals, Run, starts_of_step

LEVELS = ("iid", "renewal", "moments", "distribution")

# Cells of the coarse grid in the document of a mean token, and the least and most in a pack: with
# thousands of documents in a pack its law is all but normal, and the exact moments fix it.
CELLS_PER_DOCUMENT = 24
MIN_CELLS, MAX_CELLS = 1024, 1 << 15

# Tokens of segments (any shape) -> cost on one rank, same shape; and the fixed cost of a pack.
SegmentCost = Callable[[NDArray], NDArray[np.float64]]


@dataclass(frozen=True)
class Prediction:
    """What one level says about the packs of one CP degree; costs in the unit of the cost.

    ``relative_error`` estimates the numerical error of the level (of its variance for ``moments``,
    of its imbalance, from two grids, for ``distribution``), not of its assumptions; it is 0 where
    a level is a closed formula. NaN where a level has no such number; ``note`` then says why.
    ``density``: the law of a step's packs pooled, as costs (n,) and their probabilities (n,).
    """

    cp_size: int
    groups: int
    level: str
    moments: Moments
    extremes: Extremes
    neighbour_correlation: float = nan
    relative_error: float = 0.0
    note: str = ""
    density: tuple[Floats, Floats] | None = field(default=None, compare=False, repr=False)


@dataclass
class LengthModel:
    """A length distribution and how it becomes a step's stream.

    ``pmf``: P(num_tokens = l), shape (L_max + 1,); ``piece_tokens``: the cap under which longer
    documents are split into pieces, None where documents come as they are; ``no_constant``: why
    levels 1 and 2 have no number (an infinite moment), empty where they have.

    Raises :class:`~cpbalance.errors.InputError` for a pmf that is none.
    """

    pmf: ArrayLike
    piece_tokens: int | None = None
    no_constant: str = ""
    _renewals: Renewals | None = field(default=None, repr=False)
    _curves: list[tuple[Floats, Curves]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.pmf = checked_pmf(self.pmf)
        if self.piece_tokens is not None and self.piece_tokens < 1:
            raise InputError(f"piece_tokens is {self.piece_tokens}: give at least 1, or None")

    def renewals(self, pmf: Floats) -> Renewals:
        """The renewal density of ``pmf``, the model's own in larger tokens, its tail lumped."""
        if self._renewals is None or not np.array_equal(self._renewals.pmf, pmf):
            self._renewals = Renewals(pmf)
        return self._renewals

    def curves(self, renewals: Renewals, excess: Floats, tokens: int) -> Curves:
        """Curves of level 3 for at least ``tokens`` tokens, shared by equal costs."""
        for known, curves in self._curves:
            reaches = curves.slopes.any() or curves.values.shape[1] > tokens
            if known.shape == excess.shape and reaches and np.allclose(known, excess, 1e-12, 1e-12):
                return curves
        curves = cost_curves(renewals, excess, tokens)
        self._curves.append((excess, curves))
        return curves


def predict(
    model: LengthModel,
    costs: Mapping[int, tuple[SegmentCost, float]],
    tokens_per_gpu: int,
    groups: Mapping[int, int],
    levels: Sequence[str] = LEVELS,
) -> list[Prediction]:
    """Predictions of ``levels`` for every CP degree of ``costs``, in its order.

    ``costs`` maps a CP degree to the cost of segments on one rank and the fixed cost of a pack;
    ``tokens_per_gpu`` is S, so that a pack has CP·S tokens; ``groups`` maps a degree to its packs a
    step. Raises :class:`~cpbalance.errors.InputError` for costs that are not finite, a budget
    under one token or no groups.

    >>> model = LengthModel(np.array([0, 0, 0.5, 0, 0.5]))
    >>> rows = predict(model, {1: (lambda l: l**2.0, 0.0)}, tokens_per_gpu=64, groups={1: 8})
    >>> [row.level for row in rows]
    ['iid', 'renewal', 'moments', 'distribution']
    """
    rows: list[Prediction] = []
    # Curves of the longest packs serve the shorter ones.
    for cp_size in sorted(costs, reverse=True):
        rows += _predict_degree(
            model, costs[cp_size], cp_size, tokens_per_gpu, groups[cp_size], levels
        )
    rows = [row for row in rows if row.level in levels]
    order = {cp_size: index for index, cp_size in enumerate(costs)}
    return sorted(rows, key=lambda row: order[row.cp_size])


def _predict_degree(
    model: LengthModel,
    cost: tuple[SegmentCost, float],
    cp_size: int,
    tokens_per_gpu: int,
    groups: int,
    levels: Sequence[str],
) -> list[Prediction]:
    segment, fixed = cost
    if not np.isfinite(fixed):
        raise InputError(f"the fixed cost of a pack is {fixed}: costs must be finite")
    pack_tokens, groups = checked_budget(cp_size * tokens_per_gpu, groups)
    pmf = model.pmf
    lengths = np.arange(pmf.size)
    per_segment = checked_cost(np.append(0.0, segment(lengths[1:])), pmf)
    document = split_cost(per_segment, model.piece_tokens)

    rows = []
    for level, law in (("iid", iid_moments), ("renewal", renewal_moments)):
        if model.no_constant:
            empty = Extremes(*[nan] * 6)
            rows.append(Prediction(cp_size, groups, level, Moments(nan, nan, nan), empty,
                                   note=model.no_constant))  # fmt: skip
            continue
        moments = law(pmf, document, pack_tokens, fixed)
        extremes = normal_extremes(moments.mean, moments.variance**0.5, groups)
        rows.append(Prediction(cp_size, groups, level, moments, extremes))
    if not {"moments", "distribution"} & set(levels):
        return rows
    return rows + _exact_levels(model, per_segment, fixed, cp_size, pack_tokens, groups, levels)


def _exact_levels(
    model: LengthModel,
    cost: Floats,
    fixed: float,
    cp_size: int,
    pack_tokens: int,
    groups: int,
    levels: Sequence[str],
) -> list[Prediction]:
    # Within a step, documents longer than the step are all alike. A common divisor of all lengths
    # and the pack makes larger tokens of them, and changes nothing else.
    pmf = lump_tail(model.pmf, pack_tokens * groups)
    unit = gcd(pack_tokens, model.piece_tokens or 0, int(np.gcd.reduce(np.flatnonzero(pmf))))
    pmf, cost = pmf[::unit], cost[: pmf.size : unit]
    piece = model.piece_tokens // unit if model.piece_tokens else None
    pack = pack_tokens // unit

    # Costs are taken relative to the mean cost of a document: one set of curves for all degrees.
    document = split_cost(cost, piece)
    scale = float(pmf @ document) or 1.0
    cost, document = cost / scale, document / scale
    rate = float(pmf @ document) / float(pmf @ np.arange(pmf.size))
    excess = document - rate * np.arange(pmf.size)
    renewals = model.renewals(pmf)
    curves = model.curves(renewals, excess, pack)
    starts = starts_of_step(renewals, cost, pack, groups, piece)
    raw = [raw_moments(runs, document, rate, curves, pack) for runs in starts.runs]
    counts = [1, groups - 1][: len(raw)]
    pooled = central(sum(n * r for n, r in zip(counts, raw, strict=True)) / groups, rate * pack)
    correlation = nan
    if groups > 2 and (piece is None or pmf.size - 1 <= piece):
        correlation = neighbour_correlation(pmf, excess, curves, starts.weights, pack)

    in_units = moments_of(
        pooled.mean * scale + fixed,
        pooled.variance * scale**2,
        pooled.skewness * pooled.variance**1.5 * scale**3,
    )
    moments = Prediction(
        cp_size,
        groups,
        "moments",
        in_units,
        gamma_extremes(in_units, groups),
        correlation,
        max(curves.bend, starts.swing),
    )
    if "distribution" not in levels:
        return [moments]
    exact = [central(one, rate * pack) for one in raw]
    law = _law_prediction(moments, starts.runs, exact, (pmf, document), pack, (scale, fixed))
    return [moments, law]


def _law_prediction(
    moments: Prediction,
    starts: list[list[Run]],
    exact: Sequence[Moments],
    documents: tuple[Floats, Floats],
    pack: int,
    units: tuple[float, float],
) -> Prediction:
    cells = _cells(documents[0], pack)
    fine, values, masses = _extremes_on(cells, starts, documents, pack, exact, moments, units)
    coarse, _, _ = _extremes_on(cells // 2, starts, documents, pack, exact, moments, units)
    counts = np.array([1, moments.groups - 1][: len(starts)])
    pooled = counts @ masses / moments.groups
    mean = float(pooled @ values)
    variance = float(pooled @ (values - mean) ** 2)
    if moments.groups > 1 and fine.imbalance:
        error = abs(coarse.imbalance / fine.imbalance - 1)
    else:
        error = abs(coarse.expected_max / fine.expected_max - 1)
    return Prediction(
        moments.cp_size,
        moments.groups,
        "distribution",
        moments_of(mean, variance, float(pooled @ (values - mean) ** 3)),
        fine,
        moments.neighbour_correlation,
        max(error, moments.relative_error),
        density=(values, pooled),
    )


def _cells(pmf: Floats, pack: int) -> int:
    """Cells of a pack, a power of 2: cost sits in long documents, so E[L²]/E[L] sets the scale."""
    length = np.arange(pmf.size)
    wanted = CELLS_PER_DOCUMENT * pack * (pmf @ length) / (pmf @ length**2)
    return int(np.clip(1 << max(0, round(np.log2(wanted))), MIN_CELLS, MAX_CELLS))


def _extremes_on(
    cells: int,
    starts: list[list[Run]],
    documents: tuple[Floats, Floats],
    pack: int,
    exact: Sequence[Moments],
    moments: Prediction,
    units: tuple[float, float],
) -> tuple[Extremes, Floats, Floats]:
    values, masses = pack_laws(starts, documents, pack, cells, exact)
    scale, fixed = units
    values = values * scale + fixed
    counts = [1, moments.groups - 1]
    laws = [PackLaw(mass, count) for mass, count in zip(masses, counts, strict=False)]
    return expected_extremes(values, laws), values, masses
