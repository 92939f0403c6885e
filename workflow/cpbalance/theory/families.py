"""Exponential against normal lengths: by how much the variance of a pack's cost differs.

With h = L², mean μ and c = σ/μ of the normal, per document and in units of μ⁴:

a pack of so many documents: Var(h) = 20 for the exponential, 4c² + 2c⁴ for the normal (the
article's comparison: ratios 3.33, 17.78, 77.58, 497.51 for c = 1, 0.5, 0.25, 0.1);

a pack of so many tokens: Var(h − rL) = 8 for the exponential, c²·(1 + c⁴) for the normal, so that
the ratios are 4, 30.1, 127.5 and 799.9. With r = E[h]/μ = μ·(1 + c²) and L = μ + σZ the terms in
Z and Z² of h − rL are μσ·(1 − c²) and σ², whence μ²σ²·(1 − c²)² + 2σ⁴.

Lengths are neither capped nor rounded here, and normal ones may be negative, as in the article's
formula; the Monte-Carlo check draws them so.
"""

from dataclasses import dataclass

import numpy as np

from cpbalance.errors import InputError

PACKS_OF = ("documents", "tokens")
EXPONENTIAL = {"documents": 20.0, "tokens": 8.0}

# Mean documents of a simulated pack: the ends of a pack are about 1/400 of it.
PACK_DOCUMENTS = 400
BATCH = 1000


@dataclass(frozen=True)
class Comparison:
    """One row: variances per document in units of μ⁴, their ratio and its Monte-Carlo check."""

    normal_cv: float
    pack: str
    exponential: float
    normal: float
    ratio: float
    monte_carlo: float
    standard_error: float

    @property
    def z(self) -> float:
        """Monte-Carlo ratio less the ratio, in standard errors."""
        return (self.monte_carlo - self.ratio) / self.standard_error


def normal_variance(cv: float, pack: str) -> float:
    """Variance of a pack's cost per document, normal lengths, in units of μ⁴.

    ``pack``: ``documents`` or ``tokens``, what a pack holds a fixed number of. Raises
    :class:`~cpbalance.errors.InputError` for anything else or a ``cv`` that is not positive.
    """
    if pack not in PACKS_OF or not cv > 0:
        raise InputError(
            f"pack is {pack!r}, cv {cv}: use one of {', '.join(PACKS_OF)} and a positive cv"
        )
    return 4 * cv**2 + 2 * cv**4 if pack == "documents" else cv**2 * (1 + cv**4)


def compare(normal_cvs: list[float], packs: int, seed: int) -> list[Comparison]:
    """The comparison for each coefficient of variation and kind of pack, ``packs`` simulated."""
    if packs < 2:
        raise InputError(f"packs is {packs}: give at least 2 to estimate a variance")
    rows = []
    for kind in PACKS_OF:
        top, top_error = _simulated_variance(None, kind, packs, seed)
        for cv in normal_cvs:
            bottom, bottom_error = _simulated_variance(cv, kind, packs, seed)
            normal = normal_variance(cv, kind)
            simulated = top / bottom
            error = simulated * np.hypot(top_error / top, bottom_error / bottom)
            rows.append(
                Comparison(cv, kind, EXPONENTIAL[kind], normal, EXPONENTIAL[kind] / normal,
                           float(simulated), float(error))
            )  # fmt: skip
    return rows


def _simulated_variance(cv: float | None, kind: str, packs: int, seed: int) -> tuple[float, float]:
    """Variance per document of simulated packs and its standard error; cv None: exponential."""
    key = (seed, PACKS_OF.index(kind), 0 if cv is None else round(1e6 * cv))
    generator = np.random.default_rng(np.random.SeedSequence(key))
    costs = []
    for first in range(0, packs, BATCH):
        count = min(BATCH, packs - first)
        costs.append(_pack_costs(_draw(generator, cv, count, kind), kind))
    cost = np.concatenate(costs) / np.sqrt(PACK_DOCUMENTS)
    variance = cost.var(ddof=1)
    fourth = np.mean((cost - cost.mean()) ** 4)
    return float(variance), float(np.sqrt((fourth - variance**2) / len(cost)))


def _draw(generator: np.random.Generator, cv: float | None, count: int, kind: str) -> np.ndarray:
    spread = 1.0 if cv is None else cv
    # Enough documents to fill the budget, by eight standard deviations of their sum.
    spare = int(8 * spread * PACK_DOCUMENTS**0.5) + 8 if kind == "tokens" else 0
    size = (count, PACK_DOCUMENTS + spare)
    return generator.exponential(size=size) if cv is None else generator.normal(1.0, cv, size)


def _pack_costs(lengths: np.ndarray, kind: str) -> np.ndarray:
    """Σ L² of packs, one a row; with a budget the document that reaches it is cut there."""
    if kind == "documents":
        return (lengths**2).sum(axis=1)
    filled = np.cumsum(lengths, axis=1)
    last = (filled >= PACK_DOCUMENTS).argmax(axis=1)
    rows = np.arange(len(lengths))
    before = filled[rows, last] - lengths[rows, last]
    whole = np.cumsum(lengths**2, axis=1)[rows, last] - lengths[rows, last] ** 2
    return whole + (PACK_DOCUMENTS - before) ** 2
