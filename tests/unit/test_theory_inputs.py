"""Bad input to the theory says what is wrong, and where there is no number none is given."""

import math

import numpy as np
import pytest

from cpbalance.config_lengths import Exponential, LengthsFile, Pareto
from cpbalance.errors import InputError
from cpbalance.theory.families import EXPONENTIAL, compare, normal_variance
from cpbalance.theory.iid import iid_moments
from cpbalance.theory.lengths import checked_pmf
from cpbalance.theory.predict import LengthModel, predict
from cpbalance.theory.renewal import renewal_moments
from cpbalance.theory.source import length_model, order_note

PMF = np.array([0, 0.5, 0.5])
COST = np.array([0.0, 1.0, 4.0])


@pytest.mark.parametrize(
    ("pmf", "message"),
    [
        ([], "at least one length"),
        ([0.0, 0.0], "at least one length"),
        ([[0, 1.0]], "at least one length"),
        ([0, 1.5, -0.5], "cannot be negative"),
        ([0, np.nan, 1], "not finite"),
        ([0.5, 0.5], "no tokens"),
        ([0, 0.5, 0.4], "sum to 1"),
    ],
)
def test_a_pmf_that_is_none(pmf, message):
    for use in (checked_pmf, LengthModel, lambda p: iid_moments(p, COST, 8)):
        with pytest.raises(InputError, match=message):
            use(np.array(pmf, dtype=float))


def test_lengths_over_the_cap():
    with pytest.raises(InputError, match="over the cap of 1"):
        checked_pmf(PMF, max_tokens=1)


@pytest.mark.parametrize("law", [iid_moments, renewal_moments])
def test_costs_and_budgets_that_make_no_sense(law):
    with pytest.raises(InputError, match=r"cost\[2\] is inf"):
        law(PMF, [0, 1, np.inf], 8)
    with pytest.raises(InputError, match="give one value for each"):
        law(PMF, [0, 1], 8)
    with pytest.raises(InputError, match=r"pack_tokens is 0\.5"):
        law(PMF, COST, 0.5)


def test_predictions_refuse_what_their_parts_do():
    model, cost = LengthModel(PMF), lambda n: COST[n]
    with pytest.raises(InputError, match="pack_tokens is 0"):
        predict(model, {1: (cost, 0.0)}, 0, {1: 1})
    with pytest.raises(InputError, match="groups is 0"):
        predict(model, {1: (cost, 0.0)}, 8, {1: 0})
    with pytest.raises(InputError, match="fixed cost"):
        predict(model, {1: (cost, math.inf)}, 8, {1: 1})
    with pytest.raises(InputError, match="costs must be finite"):
        predict(model, {1: (lambda n: COST[n] * np.nan, 0.0)}, 8, {1: 1})
    with pytest.raises(InputError, match="piece_tokens is 0"):
        LengthModel(PMF, piece_tokens=0)


@pytest.mark.parametrize("alpha", [1.5, 3.0, 4.0])
def test_no_constant_for_a_tail_without_fourth_moment(alpha):
    source = Pareto(family="pareto", mean=100.0, alpha=alpha)
    model = length_model(source, tokens_per_step=4096)
    rows = predict(model, {1: (lambda n: n**2.0, 0.0)}, 512, {1: 8})
    for row in rows[:2]:
        assert "no 1/CP constant exists" in row.note and f"alpha {alpha:g}" in row.note
        assert math.isnan(row.moments.variance) and math.isnan(row.extremes.imbalance)
    for row in rows[2:]:
        assert row.note == "" and row.moments.variance > 0


def test_a_cap_or_pieces_give_the_constant_back():
    capped = Pareto(family="pareto", mean=100.0, alpha=3.0, max_seq_len=512)
    assert length_model(capped, 4096).no_constant == ""
    split = capped.model_copy(update={"overlong": "split"})
    assert "documents longer than a step" in length_model(split, 4096).no_constant
    assert length_model(Exponential(family="exponential", mean=100.0), 4096).no_constant == ""


def test_files_in_their_own_order_are_noted():
    assert order_note(LengthsFile(file="x.npy")) == ""
    assert "independent" in order_note(LengthsFile(file="x.npy", order="as_is"))


@pytest.mark.parametrize(("cv", "ratio"), [(1, 3.33), (0.5, 17.78), (0.25, 77.58), (0.1, 497.51)])
def test_the_articles_ratios(cv, ratio):
    assert EXPONENTIAL["documents"] / normal_variance(cv, "documents") == pytest.approx(
        ratio, abs=0.005
    )


def test_ratios_agree_with_simulated_packs():
    rows = compare([1.0, 0.25], packs=3000, seed=3)
    assert len(rows) == 4
    for row in rows:
        assert abs(row.z) < 4
        assert row.standard_error < 0.1 * row.ratio
    with pytest.raises(InputError, match="packs is 1"):
        compare([1.0], packs=1, seed=0)
    with pytest.raises(InputError, match="positive cv"):
        normal_variance(0.0, "tokens")
