"""Metrics against their definitions, and what the bootstrap says against theory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cpbalance.metrics import (
    METRICS,
    interval,
    log_log_slope,
    metric_values,
    resampled_metrics,
    step_statistics,
)

COSTS = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 8), st.integers(1, 6)),
    elements=st.floats(1, 1e6),
)


@given(COSTS, st.integers(1, 3))
def test_metrics_are_their_definitions_whatever_the_blocks(costs, size):
    blocks = [costs[i : i + size] for i in range(0, len(costs), size)]
    values = metric_values(step_statistics(blocks))
    mean, high, low = costs.mean(axis=1), costs.max(axis=1), costs.min(axis=1)
    expected = {
        "mean": costs.mean(),
        "cv": costs.std() / costs.mean(),
        "imbalance": ((high - low) / mean).mean(),
        "max_over_mean": (high / mean).mean(),
        "max_over_min": (high / low).mean(),
        "waiting_share": (1 - mean / high).mean(),
    }
    for name, value in expected.items():
        assert values[name] == pytest.approx(value, rel=1e-9, abs=1e-7)
    assert values["variance"] == pytest.approx(costs.var(), rel=1e-9, abs=1e-9 * costs.max() ** 2)


def test_one_group_is_never_out_of_balance():
    values = metric_values(step_statistics([np.array([[3.0], [5.0]])]))
    assert values["imbalance"] == 0 and values["max_over_mean"] == 1
    assert values["variance"] == 1


def test_variance_survives_a_large_mean():
    costs = 1e12 + np.array([[0.0, 1.0], [2.0, 3.0]])
    assert metric_values(step_statistics([costs]))["variance"] == pytest.approx(1.25)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0, -1.0])
def test_costs_must_be_finite_and_positive(bad):
    with pytest.raises(ValueError, match="finite and positive"):
        step_statistics([np.array([[1.0, bad]])])


def test_no_steps_is_an_error():
    with pytest.raises(ValueError, match="no steps"):
        step_statistics([])


def test_bootstrap_error_of_a_mean_is_the_textbook_one():
    """Standard error of the mean of n independent steps: σ/√n (times √((n−1)/n) resampled)."""
    rng = np.random.default_rng(0)
    steps = 400
    statistics = step_statistics([rng.gamma(4, 1, (steps, 8))])
    resamples = resampled_metrics(statistics, 4000)
    step_means = statistics.per_step[:, 0]
    error = resamples[:, METRICS.index("mean")].std()
    # 4000 resamples know a standard deviation to 1/sqrt(8000) = 1.1 %.
    assert error == pytest.approx(step_means.std() / steps**0.5, rel=0.05)


def test_intervals_cover_the_truth_as_often_as_they_say():
    """95 % intervals for the mean of 60 steps, 300 times; binomial error 1.3 %."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(300):
        statistics = step_statistics([rng.exponential(1, (60, 4)) + 1])
        low, high = interval(resampled_metrics(statistics, 400)[:, 0], 0.95)
        hits += low <= 2 <= high
    assert 0.89 <= hits / 300 <= 0.985


def test_one_step_has_no_interval():
    assert resampled_metrics(step_statistics([np.ones((1, 4))]), 10) is None


def test_degrees_with_the_same_steps_are_resampled_together():
    """Twice the same costs, in other units: their bootstrap means stay proportional."""
    costs = np.random.default_rng(2).exponential(1, (30, 4))
    one = resampled_metrics(step_statistics([costs]), 100)
    two = resampled_metrics(step_statistics([3 * costs]), 100)
    np.testing.assert_allclose(two[:, 0], 3 * one[:, 0])


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_slope_of_a_power_law_is_its_exponent(exponent, scale):
    x = np.array([1, 2, 4, 8, 64])
    assert log_log_slope(x, scale * x.astype(float) ** exponent) == pytest.approx(
        exponent, abs=1e-9
    )


@pytest.mark.parametrize(("x", "y"), [([1], [1]), ([1, 2], [1, 0]), ([0, 2], [1, 1])])
def test_no_slope_without_points_that_have_logarithms(x, y):
    with pytest.raises(ValueError, match="at least two points, all positive"):
        log_log_slope(np.array(x), np.array(y))
