"""The slowest and the fastest of G groups, and what their spread costs.

For independent groups with distribution functions F_g: P(max ≤ x) = Π F_g(x) and
P(min > x) = Π (1 − F_g(x)), so E[max] = ∫ (1 − Fᴳ) and E[min] = ∫ (1 − F)ᴳ for equal ones. The
imbalance of a step divides by the step's own mean, which moves with its slowest group; as
1/m = G·∫₀^∞ exp(−s·Σx) ds, its expectation is that of the range under exponentially tilted laws,

E[(max − min)/m] = G·∫₀^∞ Π E[e^{−s·x_g}] · E_s[max − min] ds,

with no expansion about the mean. Source: order statistics, David and Nagaraja, ch. 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpbalance.errors import InputError

Floats = NDArray[np.float64]

# Gauss-Legendre nodes for the integral over the tilt, and points for the double sum of max/min.
TILT_NODES = 48
RATIO_POINTS = 384
# Masses below this weigh nothing, and their weighted places would be rounding.
NEGLIGIBLE = 1e-30
# Half-width, in standard deviations, and points of the grid of a normal law.
NORMAL_WIDTH, NORMAL_POINTS = 9.0, 4001


@dataclass(frozen=True)
class PackLaw:
    """Law of the cost of one pack: ``mass[i]`` at ``value[i]``, for each of ``count`` groups."""

    mass: Floats
    count: int


@dataclass(frozen=True)
class Extremes:
    """Expected extremes of one step, costs in the unit of the values.

    ``imbalance``, ``max_over_mean``, ``max_over_min`` and ``waiting_share`` (1 − mean/max) are
    expectations of the ratios of one step; NaN where the values reach to zero or below.
    """

    expected_max: float
    expected_min: float
    imbalance: float
    max_over_mean: float
    max_over_min: float
    waiting_share: float


def expected_extremes(values: Floats, laws: Sequence[PackLaw]) -> Extremes:
    """Extremes of independent groups, ``laws`` on the common increasing grid ``values`` (n,).

    Raises :class:`~cpbalance.errors.InputError` for laws without groups, of another shape, with
    negative mass or not summing to 1.
    """
    laws = [law for law in laws if law.count]
    _check(values, laws)
    masses = np.stack([law.mass for law in laws])
    counts = np.array([law.count for law in laws])
    groups = int(counts.sum())
    mean = float(counts @ (masses @ values)) / groups
    largest, smallest = _range(values, masses[:, None, :], counts)
    expected_max, expected_min = float(largest[0]), float(smallest[0])
    if values[np.flatnonzero(masses.sum(axis=0))[0]] <= 0:
        nan = float("nan")
        over_mean = expected_max / mean
        return Extremes(
            expected_max, expected_min, over_mean - expected_min / mean, over_mean, nan, nan
        )
    over_mean, under_mean = _over_step_mean(values, masses, counts, mean)
    return Extremes(
        expected_max,
        expected_min,
        over_mean - under_mean,
        over_mean,
        _max_over_min(values, masses, counts),
        _waiting_share(values, masses, counts),
    )


def normal_extremes(mean: float, deviation: float, groups: int) -> Extremes:
    """Extremes of G independent normal costs: what levels 1 and 2 can say about them.

    The ratios are ratios of expectations, as a normal law reaches below zero. Raises
    :class:`~cpbalance.errors.InputError` if ``groups`` is below 1 or the deviation negative.
    """
    if groups < 1 or not deviation >= 0:
        raise InputError(
            f"groups is {groups}, deviation {deviation}: give at least 1 group and a deviation ≥ 0"
        )
    z = np.linspace(-NORMAL_WIDTH, NORMAL_WIDTH, NORMAL_POINTS)
    mass = np.exp(-0.5 * z * z)
    mass /= mass.sum()
    spread = float(_range(z, mass[None, None, :], np.array([groups]))[0][0])
    high, low = mean + spread * deviation, mean - spread * deviation
    nan = float("nan")
    if not mean:
        return Extremes(high, low, nan, nan, nan, nan)
    return Extremes(high, low, (high - low) / mean, high / mean, nan, 1 - mean / high)


def _check(values: Floats, laws: Sequence[PackLaw]) -> None:
    if not laws:
        raise InputError("laws holds no groups: give at least one law with count ≥ 1")
    for law in laws:
        if law.mass.shape != values.shape:
            raise InputError(f"mass has shape {law.mass.shape}, the values {values.shape}")
        if law.count < 0 or law.mass.min() < 0 or abs(law.mass.sum() - 1) > 1e-6:
            raise InputError(
                f"law has count {law.count}, least mass {law.mass.min():g}, sum "
                f"{law.mass.sum():g}: give masses of at least 0 that sum to 1, and a count ≥ 0"
            )


def _range(values: Floats, masses: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """E[max] and E[min], shape (k,), for ``masses`` of shape (laws, k, n) that sum to 1."""
    below = np.minimum(np.cumsum(masses, axis=-1), 1.0)
    above = np.minimum(np.cumsum(masses[..., ::-1], axis=-1), 1.0)[..., ::-1]
    all_below = np.prod(below ** counts[:, None, None], axis=0)
    all_above = np.prod(above ** counts[:, None, None], axis=0)
    gaps = np.diff(values)
    # Summation by parts: E[max] = x_last − Σ gap·P(max ≤ x), E[min] = x_0 + Σ gap·P(min > x).
    return values[-1] - all_below[:, :-1] @ gaps, values[0] + all_above[:, 1:] @ gaps


def _over_step_mean(
    values: Floats, masses: Floats, counts: Floats, mean: float
) -> tuple[float, float]:
    """E[max/m] and E[min/m], m the mean over the groups of a step."""
    groups = counts.sum()
    node, weight = np.polynomial.legendre.leggauss(TILT_NODES)
    node, weight = 0.5 * (node + 1), 0.5 * weight
    tilt = node / (1 - node) / (groups * mean)  # s, from 0 to ∞
    jacobian = weight / (1 - node) ** 2 / mean
    # Each law is tilted about its smallest value, so that nothing overflows or vanishes.
    least = values[(masses > 0).argmax(axis=1)]
    shift = values - least[:, None]
    tilted = masses[:, None, :] * np.exp(-tilt[:, None] * np.maximum(shift, 0)[:, None, :])
    total = tilted.sum(axis=-1)
    log_weight = counts @ np.log(total) - tilt * (counts @ least)
    largest, smallest = _range(values, tilted / total[..., None], counts)
    scale = jacobian * np.exp(log_weight)
    return float(scale @ largest), float(scale @ smallest)


def _waiting_share(values: Floats, masses: Floats, counts: Floats) -> float:
    """1 − E[m/max]: given the slowest, the others follow their laws cut off there."""
    below = np.minimum(np.cumsum(masses, axis=1), 1.0)
    partial = np.cumsum(masses * values, axis=1)
    share = 0.0
    for one in range(len(counts)):
        others = counts - (np.arange(len(counts)) == one)
        reach = partial[one] * np.prod(below ** others[:, None], axis=0)
        share += counts[one] * float(np.diff(reach, prepend=0.0) @ (1 / values))
    return float(1 - share / counts.sum())


def _max_over_min(values: Floats, masses: Floats, counts: Floats) -> float:
    """E[max/min] from P(min ≥ x_i, max ≤ x_j), on a coarser grid."""
    step = -(-values.size // RATIO_POINTS)
    padding = -values.size % step
    weights = np.pad(masses, ((0, 0), (0, padding))).reshape(len(counts), -1, step)
    points = np.pad(values, (0, padding)).reshape(-1, step)
    pooled = np.einsum("lps,l->ps", weights, counts.astype(float))
    total = pooled.sum(axis=1)
    kept = total > NEGLIGIBLE
    at = (pooled * points).sum(axis=1)[kept] / total[kept]
    below = np.cumsum(weights.sum(axis=2)[:, kept], axis=1)
    before = np.concatenate([np.zeros((len(counts), 1)), below], axis=1)
    # between[i, j] = P(every group within x_i … x_j), one row more than columns.
    between = np.prod(
        np.clip(before[:, None, 1:] - before[:, :, None], 0, 1) ** counts[:, None, None], axis=0
    )
    least = between[:-1] - between[1:]  # min = x_i, max ≤ x_j
    exact = np.diff(least, axis=1, prepend=0.0)
    return float((1 / at) @ exact @ at)
