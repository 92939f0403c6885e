"""Named families of document lengths: draws, and their exact probability mass function.

A draw is a real number, raised to ``min_tokens`` and rounded down, then cut at the cap; this is
the article's recipe for its exponential and normal lengths. The mass of a whole number l between
the two limits is therefore F(l+1) − F(l), with F the family's distribution function; what falls
under ``min_tokens`` sits on it, and what exceeds the cap sits on the cap (``truncate``).
"""

import numpy as np
from numpy.typing import NDArray

from cpbalance.config_lengths import Lengths, Mixture

# Larger draws become this: the largest length that float64 counts exactly.
LONGEST = 2.0**53


def lognormal_parameters(mean: float, cv: float) -> tuple[float, float]:
    """Mean and standard deviation of log L for a lognormal L with this mean and CV."""
    variance = np.log1p(cv**2)
    return float(np.log(mean) - variance / 2), float(np.sqrt(variance))


def pareto_scale(mean: float, alpha: float) -> float:
    """Smallest value of a Pareto with this mean: mean·(alpha − 1)/alpha."""
    return mean * (alpha - 1) / alpha


def _draw_real(lengths: Lengths, generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    mean = lengths.mean
    match lengths.family:
        case "exponential":
            return generator.exponential(mean, count)
        case "normal":
            return generator.normal(mean, lengths.cv * mean, count)
        case "lognormal":
            return generator.lognormal(*lognormal_parameters(mean, lengths.cv), count)
        case "pareto":
            return pareto_scale(mean, lengths.alpha) * (1 + generator.pareto(lengths.alpha, count))
        case "uniform":
            return generator.uniform(
                mean * (1 - lengths.spread), mean * (1 + lengths.spread), count
            )
        case "constant":
            return np.full(count, mean)
    raise ValueError(f"no such family: {lengths.family}")


def draw_lengths(lengths: Lengths, generator: np.random.Generator, count: int) -> NDArray[np.int64]:
    """``count`` whole lengths in tokens, int64, each at least 1; the mean must be in tokens.

    Lengths over the cap are returned as they are: see :mod:`cpbalance.lengths.caps`.
    """
    if isinstance(lengths, Mixture):
        weights = np.array([part.weight for part in lengths.components])
        component = generator.choice(len(weights), count, p=weights / weights.sum())
        out = np.empty(count, dtype=np.int64)
        for index, part in enumerate(lengths.components):
            chosen = component == index
            out[chosen] = draw_lengths(part.lengths, generator, int(chosen.sum()))
        return out
    real = _draw_real(lengths, generator, count)
    return np.clip(real, lengths.min_tokens, LONGEST).astype(np.int64)


def _cumulative(lengths: Lengths, value: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(real draw < value)."""
    from scipy.special import ndtr

    mean = lengths.mean
    match lengths.family:
        case "exponential":
            return -np.expm1(-np.maximum(value, 0) / mean)
        case "normal":
            return ndtr((value - mean) / (lengths.cv * mean))
        case "lognormal":
            mu, sigma = lognormal_parameters(mean, lengths.cv)
            return ndtr((np.log(np.maximum(value, np.finfo(float).tiny)) - mu) / sigma)
        case "pareto":
            scale = pareto_scale(mean, lengths.alpha)
            return 1 - (scale / np.maximum(value, scale)) ** lengths.alpha
        case "uniform":
            low, width = mean * (1 - lengths.spread), 2 * mean * lengths.spread
            return np.clip((value - low) / width, 0, 1)
        case "constant":
            return (value > mean).astype(np.float64)
    raise ValueError(f"no such family: {lengths.family}")


def family_pmf(lengths: Lengths, longest: int) -> NDArray[np.float64]:
    """P(L = l) for l = 0 … ``longest`` (tokens), float64; the mass above sits on ``longest``.

    For ``overlong: truncate`` pass the cap as ``longest``; for ``split``, or without a cap, any
    length beyond which documents do not matter. The mean must be in tokens.
    """
    if isinstance(lengths, Mixture):
        total = sum(part.weight for part in lengths.components)
        return sum(
            (
                part.weight / total * family_pmf(part.lengths, longest)
                for part in lengths.components
            ),
            start=np.zeros(longest + 1),
        )
    edges = np.arange(longest + 2, dtype=np.float64)
    below = _cumulative(lengths, edges)
    below[: min(lengths.min_tokens, longest) + 1] = 0.0
    below[-1] = 1.0
    return np.diff(below)
