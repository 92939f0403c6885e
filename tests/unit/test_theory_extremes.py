"""Extremes of a step against enumeration and against laws that must hold."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpbalance.theory.extremes import PackLaw, expected_extremes, normal_extremes
from cpbalance.theory.fits import gamma_extremes
from cpbalance.theory.iid import Moments

SIZE = 5
WEIGHTS = st.lists(st.floats(0, 1), min_size=SIZE, max_size=SIZE).filter(lambda w: sum(w) > 0.1)
LAWS = WEIGHTS.map(lambda w: np.array(w) / sum(w))
VALUES = st.lists(st.floats(0.1, 2), min_size=SIZE, max_size=SIZE).map(np.cumsum)


@given(VALUES, LAWS, LAWS, st.integers(1, 2), st.integers(0, 2))
@settings(max_examples=50, deadline=None)
def test_extremes_are_those_of_every_possible_step(values, one, other, ones, others):
    found = expected_extremes(values, [PackLaw(one, ones), PackLaw(other, others)])
    laws = [one] * ones + [other] * others
    expected = np.zeros(6)
    for places in itertools.product(range(SIZE), repeat=len(laws)):
        probability = math.prod(law[i] for law, i in zip(laws, places, strict=True))
        costs = values[list(places)]
        high, low, mean = costs.max(), costs.min(), costs.mean()
        ratios = [high, low, (high - low) / mean, high / mean, high / low, 1 - mean / high]
        expected += probability * np.array(ratios)
    given_back = [
        found.expected_max,
        found.expected_min,
        found.imbalance,
        found.max_over_mean,
        found.max_over_min,
        found.waiting_share,
    ]
    assert given_back == pytest.approx(expected.tolist(), rel=2e-4, abs=2e-4)


@given(VALUES, LAWS, st.integers(1, 200))
@settings(deadline=None)
def test_extremes_surround_the_mean_and_spread_with_more_groups(values, law, groups):
    few = expected_extremes(values, [PackLaw(law, groups)])
    more = expected_extremes(values, [PackLaw(law, groups + 1)])
    mean = law @ values
    slack = 1e-9 * values[-1]
    assert few.expected_min <= mean + slack and mean <= few.expected_max + slack
    assert few.expected_max <= more.expected_max + slack
    assert more.expected_min <= few.expected_min + slack


def test_one_group_is_balanced():
    values = np.linspace(1, 3, 50)
    law = expected_extremes(values, [PackLaw(np.full(50, 0.02), 1)])
    assert law.imbalance == pytest.approx(0, abs=1e-6)
    assert law.max_over_mean == pytest.approx(1, abs=1e-6)
    assert law.waiting_share == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("groups", "expected"), [(1, 0.0), (2, 1 / math.sqrt(math.pi)), (3, 1.5 / math.sqrt(math.pi))]
)
def test_normal_order_statistics(groups, expected):
    found = normal_extremes(10.0, 2.0, groups)
    assert found.expected_max == pytest.approx(10 + 2 * expected, abs=1e-5)
    assert found.imbalance == pytest.approx(0.4 * expected, abs=1e-6)


def test_the_gamma_fit_is_exact_for_a_gamma_law():
    """Two exponential costs: E[max] = 1.5, E[min] = 0.5."""
    found = gamma_extremes(Moments(mean=1.0, variance=1.0, skewness=2.0), groups=2)
    assert found.expected_max == pytest.approx(1.5, rel=1e-3)
    assert found.expected_min == pytest.approx(0.5, rel=1e-3)


def test_bad_laws_are_refused():
    values = np.array([1.0, 2.0])
    with pytest.raises(ValueError, match="at least one law"):
        expected_extremes(values, [PackLaw(np.array([1.0, 0.0]), 0)])
    with pytest.raises(ValueError, match="sum to 1"):
        expected_extremes(values, [PackLaw(np.array([0.5, 0.4]), 2)])
    with pytest.raises(ValueError, match="shape"):
        expected_extremes(values, [PackLaw(np.ones(1), 2)])
