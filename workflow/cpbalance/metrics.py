"""How unevenly the packs of a step cost, with bootstrap intervals over steps.

With c the costs of the G packs of one step: imbalance = (max − min)/mean, max_over_mean the
straggler factor, max_over_min, and waiting_share = 1 − mean/max, the share of the ranks' time
spent waiting for the slowest one; each is averaged over steps. mean, variance and cv pool all
packs of all steps (population moments). Steps are independent, packs within a step are not, so
steps are what the bootstrap resamples (Efron 1979, Ann. Statist. 7:1).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpbalance.streams import step_generator

STEP_METRICS = ("imbalance", "max_over_mean", "max_over_min", "waiting_share")
METRICS = ("mean", "variance", "cv", *STEP_METRICS)

_RESAMPLES_AT_ONCE = 64


@dataclass(frozen=True)
class StepStatistics:
    """What the metrics need of each step; ``per_step`` is (steps, 2 + step metrics) float64.

    Its first two columns are the mean over the packs of cost − ``shift`` and of its square.
    """

    groups: int
    shift: float
    per_step: NDArray[np.float64]

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.per_step)


def step_statistics(blocks: Iterable[NDArray[np.float64]]) -> StepStatistics:
    """Statistics from blocks of shape (steps, groups) with positive costs.

    Raises ValueError for no steps, or for costs that are not finite and positive.
    """
    parts: list[NDArray[np.float64]] = []
    shift, groups = 0.0, 0
    for cost in blocks:
        if not (np.isfinite(cost).all() and (cost > 0).all()):
            raise ValueError("costs must be finite and positive")
        if not parts:
            shift, groups = float(cost.mean()), cost.shape[1]
        low, high, mean = cost.min(axis=1), cost.max(axis=1), cost.mean(axis=1)
        centred = cost - shift
        columns = [
            centred.mean(axis=1),
            (centred**2).mean(axis=1),
            (high - low) / mean,
            high / mean,
            high / low,
            1 - mean / high,
        ]
        parts.append(np.stack(columns, axis=1))
    if not parts:
        raise ValueError("no steps")
    return StepStatistics(groups, shift, np.concatenate(parts))


def _metrics_of(averages: NDArray[np.float64], shift: float) -> NDArray[np.float64]:
    """(…, columns of per_step) averaged over steps -> (…, METRICS)."""
    first, second = averages[..., 0], averages[..., 1]
    mean = shift + first
    variance = np.maximum(second - first**2, 0)
    pooled = np.stack([mean, variance, np.sqrt(variance) / mean], axis=-1)
    return np.concatenate([pooled, averages[..., 2:]], axis=-1)


def metric_values(statistics: StepStatistics) -> dict[str, float]:
    """Every metric over all steps."""
    values = _metrics_of(statistics.per_step.mean(axis=0), statistics.shift)
    return dict(zip(METRICS, values.tolist(), strict=True))


def resampled_metrics(statistics: StepStatistics, resamples: int) -> NDArray[np.float64] | None:
    """Metrics of bootstrap resamples of the steps, shape (resamples, METRICS); None for one step.

    The resamples depend on the number of steps only. Degrees that were simulated on the same
    documents are thus resampled together, and what is fitted across them keeps their correlation.
    """
    steps = statistics.steps
    if steps < 2:
        return None
    generator = step_generator(0, "bootstrap", steps)
    share = np.full(steps, 1 / steps)
    parts = []
    for first in range(0, resamples, _RESAMPLES_AT_ONCE):
        count = min(_RESAMPLES_AT_ONCE, resamples - first)
        weights = generator.multinomial(steps, share, size=count) / steps
        parts.append(weights @ statistics.per_step)
    return _metrics_of(np.concatenate(parts), statistics.shift)


def interval(samples: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Central percentile interval of one-dimensional bootstrap samples."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(samples, [tail, 1 - tail])
    return float(low), float(high)


def log_log_slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least-squares slope of log y against log x; ``y`` is (…, points), all positive.

    Raises ValueError for fewer than two points or a value that has no logarithm.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) < 2 or not ((x > 0).all() and (y > 0).all()):
        raise ValueError("a slope needs at least two points, all positive")
    centred = np.log(x) - np.log(x).mean()
    return np.log(y) @ centred / (centred @ centred)
