"""Attention work: pair counts by brute force, FLOPs by formula, head sharing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpbalance.attention import Attention, attention_pairs, forward_flops, heads_per_rank
from cpbalance.costs import COSTS, cost_model
from cpbalance.errors import InputError

LAYER = Attention(q_heads=64, kv_heads=8, head_dim=128, causal=True)


@given(st.integers(0, 60))
def test_pairs_are_the_entries_of_the_mask(length):
    mask = np.ones((length, length), dtype=bool)
    assert attention_pairs(length, causal=False) == mask.sum()
    assert attention_pairs(length, causal=True) == np.tril(mask).sum()


def test_pairs_do_not_overflow():
    assert attention_pairs(2**31 - 1, causal=False) == (2**31 - 1) ** 2


def test_forward_flops_are_two_matrix_products_a_head():
    """QK^T and PV: 2·L²·head_dim multiply-adds each, so 4·head_dim·L² FLOPs a head."""
    full = Attention(q_heads=4, kv_heads=4, head_dim=16, causal=False)
    assert forward_flops(10, full) == 2 * 2 * 10 * 10 * 16 * 4
    assert forward_flops(10, full, cp_size=2) == forward_flops(10, full) / 2


@pytest.mark.parametrize(
    ("cp_size", "heads"), [(1, (64, 8)), (4, (16, 2)), (8, (8, 1)), (16, (4, 1)), (64, (1, 1))]
)
def test_heads_of_a_rank_and_replicated_key_value_heads(cp_size, heads):
    assert heads_per_rank(LAYER, cp_size) == heads


@pytest.mark.parametrize("cp_size", [0, 3, 128])
def test_a_degree_that_does_not_divide_the_heads_is_refused(cp_size):
    with pytest.raises(InputError, match=r"must divide q_heads \(64\); use one of \[1, 2, 4"):
        heads_per_rank(LAYER, cp_size)


def test_a_degree_that_cannot_share_key_value_heads_is_refused():
    with pytest.raises(InputError, match=r"must divide kv_heads \(6\)"):
        heads_per_rank(Attention(q_heads=12, kv_heads=6, head_dim=8, causal=True), 4)


@pytest.mark.parametrize("keys", [{"q_heads": 0}, {"kv_heads": 3}, {"head_dim": -1}])
def test_layers_that_make_no_sense_are_refused(keys):
    with pytest.raises(InputError):
        Attention(**{"q_heads": 4, "kv_heads": 4, "head_dim": 8, "causal": True} | keys)


@pytest.mark.parametrize("cp_size", [1, 4])
def test_costs_of_segments(cp_size):
    segments = np.array([3, 5])
    for name, expected in {
        "quadratic": np.array([9, 25]) / cp_size,
        "full_pairs": np.array([9, 25]) / cp_size,
        "causal_pairs": np.array([6, 15]) / cp_size,
        "flops": np.array([6, 15]) * 4 * 128 * 64 / cp_size,
    }.items():
        model = cost_model(name, LAYER, cp_size)
        assert model.fixed == 0
        np.testing.assert_array_equal(model.segment(segments), expected)


def test_an_unknown_cost_is_refused_with_the_valid_ones():
    with pytest.raises(InputError, match=f"cost is 'cubic': use one of {COSTS[0]}"):
        cost_model("cubic", LAYER, 1)
