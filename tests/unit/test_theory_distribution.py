"""Level 4 against enumeration and against 20,000 simulated steps."""

import csv
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpbalance.theory.distribution import characteristic_functions
from cpbalance.theory.predict import LengthModel, predict
from cpbalance.theory.stream import Renewals, starts_of_step
from tests.theory_plain import all_steps, article_pmf, quadratic

REFERENCE = Path(__file__).parents[1] / "data" / "theory-reference.csv"
PMFS = st.lists(st.floats(0.05, 1), min_size=1, max_size=4).map(
    lambda weights: np.array([0, *weights]) / sum(weights)
)


@given(PMFS, st.integers(2, 5), st.sampled_from([1, 2, 3]), st.floats(0.01, 2))
@settings(max_examples=40, deadline=None)
def test_characteristic_function_is_that_of_every_possible_step(pmf, pack, groups, spacing):
    """Without coarse-graining, of the first pack and of the mean other one."""
    cost = np.arange(len(pmf)) ** 2.0
    starts = starts_of_step(Renewals(pmf), cost, pack, groups).runs
    phi, atoms = characteristic_functions(starts, (pmf, cost), pack, pack, spacing)
    steps = list(all_steps(pmf, [*cost, *[0] * pack], pack, groups))
    probability = np.array([step.probability for step in steps])
    costs = np.array([step.costs for step in steps])
    omega = spacing * np.arange(min(phi.shape[1], 20))
    filled = cost[min(pack, len(cost) - 1)]
    for index, packs in enumerate((costs[:, :1], costs[:, 1:])[: len(starts)]):
        waves = np.exp(1j * omega[:, None, None] * packs).mean(axis=2)
        expected = waves @ probability - atoms[index] * np.exp(1j * omega * filled)
        assert phi[index, : omega.size] == pytest.approx(expected, abs=1e-8)


@given(
    st.lists(st.floats(0.1, 1), min_size=3, max_size=60),
    st.integers(30, 300),
    st.sampled_from([1, 2, 16]),
)
@settings(max_examples=12, deadline=None)
def test_mass_is_conserved_and_moments_are_those_of_level_3(weights, tokens, groups):
    pmf = np.array([0, *weights]) / sum(weights)
    rows = predict(LengthModel(pmf), quadratic([1]), tokens, {1: groups})
    exact, law = rows[2], rows[3]
    _, mass = law.density
    assert (mass >= 0).all() and mass.sum() == pytest.approx(1, abs=1e-9)
    assert law.moments.mean == pytest.approx(exact.moments.mean, rel=1e-3)
    assert law.moments.cv == pytest.approx(exact.moments.cv, rel=2e-2, abs=1e-3)
    assert law.extremes.expected_min <= law.moments.mean * (1 + 1e-6)
    assert law.extremes.expected_max >= law.moments.mean * (1 - 1e-6)


def test_coarse_graining_alone_keeps_the_moments():
    """The slopes of φ at 0, before any stretch, at 16 tokens a cell."""
    pmf = article_pmf("exponential")
    cost = np.arange(len(pmf)) ** 2.0
    cost /= pmf @ cost
    starts = starts_of_step(Renewals(pmf), cost, 8192, 128).runs
    exact = predict(LengthModel(pmf), {1: (lambda n: cost[n], 0.0)}, 8192, {1: 128})[2].moments
    step = 1e-3
    phi, atoms = characteristic_functions(starts, (pmf, cost), 8192, 512, step, most=2)
    phi = phi + atoms[:, None] * np.exp(1j * step * np.arange(2) * cost[8192])
    log = np.log(np.array([1, 127]) @ phi / 128)[1]
    assert log.imag / step == pytest.approx(exact.mean, rel=1e-4)
    assert -2 * log.real / step**2 == pytest.approx(exact.variance, rel=1e-3)


def reference():
    with REFERENCE.open() as file:
        return {
            (row["lengths"], int(row["cp_size"]), row["metric"]): (
                float(row["value"]),
                float(row["standard_error"]),
            )
            for row in csv.DictReader(file)
        }


def capped_pmf(name, shared_dir):
    if name in ("exponential", "normal"):
        return article_pmf(name)
    lengths = pq.read_table(shared_dir / "data" / f"{name}-lengths.parquet")["num_tokens"]
    counts = np.bincount(np.minimum(lengths.to_numpy(), 8192))
    counts[0] = 0
    return counts / counts.sum()


@pytest.mark.parametrize(
    "name", ["exponential", "normal", "linux-6.1-code", "linux-6.1-docs", "wikipedia", "wlb-128k"]
)
def test_extremes_agree_with_simulation(name, shared_dir):
    """Imbalance and max/mean within 1.5%, or three standard errors where those are larger."""
    known, sizes = reference(), (1, 2, 4, 8, 16, 32)
    rows = predict(
        LengthModel(capped_pmf(name, shared_dir)),
        quadratic(sizes),
        8192,
        {size: 128 // size for size in sizes},
    )
    for row in rows:
        if row.level != "distribution":
            continue
        assert row.relative_error < 1e-3
        for metric in ("imbalance", "max_over_mean", "max_over_min", "waiting_share"):
            value, error = known[name, row.cp_size, metric]
            predicted = getattr(row.extremes, metric)
            assert abs(predicted - value) < max(0.015 * value, 3 * error), (row.cp_size, metric)
        for metric in ("mean", "cv"):
            value, error = known[name, row.cp_size, metric]
            assert abs(getattr(row.moments, metric) - value) < max(4 * error, 2e-3 * value)


def test_the_cruder_levels_are_cruder():
    """Independent documents overstate the imbalance of the article's exponential by half."""
    known, sizes = reference(), (1, 4, 16)
    rows = predict(
        LengthModel(article_pmf("exponential")),
        quadratic(sizes),
        8192,
        {size: 128 // size for size in sizes},
    )
    for size in sizes:
        value, _ = known["exponential", size, "imbalance"]
        error = {
            row.level: abs(row.extremes.imbalance / value - 1)
            for row in rows
            if row.cp_size == size
        }
        assert error["iid"] > 0.5 > 0.05 > error["renewal"] > error["distribution"]


def test_a_long_tail_does_not_blur_the_bulk():
    """One document in 10,000 fills a whole pack: the others' spread is what it is without it."""
    short = article_pmf("exponential")
    tailed = np.zeros(2**19 + 1)
    tailed[: short.size] = short * (1 - 1e-4)
    tailed[-1] = 1e-4
    rows = [predict(LengthModel(pmf), quadratic([16]), 8192, {16: 8})[3] for pmf in (short, tailed)]
    quartiles = []
    for row in rows:
        values, mass = row.density
        below = np.cumsum(mass)
        quartiles.append([float(np.interp(q, below, values)) for q in (0.05, 0.25, 0.5, 0.75)])
    assert quartiles[1] == pytest.approx(quartiles[0], rel=0.02)
