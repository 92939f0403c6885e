"""What is timed: heads of a rank, tensors of a pack, the memory they need."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpbalance.attention import Attention
from cpbalance.errors import InputError
from cpbalance.timing.plan import Target
from cpbalance.timing.workload import (
    HeadCount,
    Workload,
    check_memory,
    check_output,
    middle_target,
    predicted_bytes,
    segments_to_check,
    timed_heads,
)

torch = pytest.importorskip("torch", reason="tensors are torch's")

from cpbalance.kernels import KERNELS  # noqa: E402

GQA = Attention(q_heads=64, kv_heads=8, head_dim=128, causal=True)


@pytest.mark.parametrize(
    ("cp_size", "limit", "expected"),
    [
        (1, None, (64, 8, 64, 8)),
        (8, None, (8, 1, 8, 1)),
        (64, None, (1, 1, 1, 1)),  # key-value heads are replicated, not split further
        (1, 1, (64, 8, 1, 1)),
        (1, 8, (64, 8, 8, 1)),
        (1, 16, (64, 8, 16, 2)),
        (64, 16, (1, 1, 1, 1)),
    ],
)
def test_heads_of_a_rank_and_heads_timed(cp_size, limit, expected):
    assert timed_heads(GQA, cp_size, limit) == HeadCount(*expected)


@given(st.sampled_from([1, 2, 4, 8, 16, 32, 64]), st.sampled_from([1, 2, 4, 8, 16, 32, 64]))
def test_timed_heads_keep_the_groups_of_the_layer(cp_size, limit):
    heads = timed_heads(GQA, cp_size, limit)
    assert heads.q_heads == min(limit, heads.rank_q_heads)
    group = heads.rank_q_heads // heads.rank_kv_heads
    assert heads.q_heads // heads.kv_heads == min(group, heads.q_heads)


def test_memory_of_a_forward_call_is_its_tensors():
    heads = HeadCount(64, 8, 64, 8)
    q = kv = 8192 * 128 * 2
    expected = 64 * q * 2 + 8 * kv * 2 + 8192 * 64 * 4
    assert predicted_bytes(8192, heads, 128, "bfloat16", ("forward",)) == expected


def test_memory_of_backward_is_more_than_the_tensors_it_makes():
    heads = HeadCount(8, 8, 8, 8)
    forward = predicted_bytes(1024, heads, 64, "bfloat16", ("forward",))
    both = predicted_bytes(1024, heads, 64, "bfloat16", ("forward", "backward"))
    gradients = 4 * 1024 * 8 * 64 * 2  # of the output, of q, k and v
    assert both >= forward + gradients


class SmallDevice:
    name = "a small GPU"

    def free_memory(self):
        return 3 * 2**30


def test_a_pack_that_does_not_fit_is_named_with_its_size():
    heads = {1: HeadCount(64, 8, 64, 8), 8: HeadCount(8, 1, 8, 1)}
    check_memory(SmallDevice(), {1: 8192, 8: 65536}, heads, GQA, ("forward",))
    message = (
        r"a pack of 1048576 tokens at cp_size 8 needs 4\.5 GiB and a small GPU has 3\.0 GiB free"
    )
    with pytest.raises(InputError, match=message):
        check_memory(SmallDevice(), {1: 8192, 8: 2**20}, heads, GQA, ("forward",))


def test_forward_allocates_no_gradient():
    layer = Attention(8, 2, 16, True, "float32")
    heads = {1: timed_heads(layer, 1, None)}
    segments = np.array([30, 20])
    sizes = (KERNELS["torch_cpu"](), layer, heads, {1: 50}, 3)
    assert Workload(*sizes, ("forward",)).batch(1, segments).grad_out is None
    both = Workload(*sizes, ("forward", "backward")).batch(1, segments)
    assert both.grad_out.shape == both.q.shape and not torch.equal(both.grad_out, both.q)


def test_tensors_have_the_shape_of_the_pack_and_the_same_values_every_time():
    layer = Attention(8, 2, 16, True, "float32")
    heads = {1: timed_heads(layer, 1, None), 4: timed_heads(layer, 4, None)}
    first, second = (
        Workload(KERNELS["torch_cpu"](), layer, heads, {1: 50, 4: 200}, seed=3) for _ in range(2)
    )
    batch = first.batch(4, np.array([120, 1, 60]))
    assert batch.q.shape == (181, 2, 16) and batch.k.shape == batch.v.shape == (181, 1, 16)
    assert batch.cu_seqlens.tolist() == [0, 120, 121, 181]
    assert batch.cu_seqlens.dtype == torch.int32
    assert batch.max_seqlen == 120 and batch.segment_tokens == (120, 1, 60)
    assert batch.q.is_contiguous() and batch.k.is_contiguous()
    again = second.batch(4, np.array([120, 1, 60]))
    assert torch.equal(batch.q, again.q) and torch.equal(batch.v, again.v)
    other = Workload(KERNELS["torch_cpu"](), layer, heads, {1: 50, 4: 200}, seed=4)
    assert not torch.equal(batch.q, other.batch(4, np.array([120, 1, 60])).q)
    # Standard normal, and not the same numbers for queries, keys and values.
    assert abs(float(batch.q.std()) - 1) < 0.05 and abs(float(batch.q.mean())) < 0.05
    assert not torch.equal(batch.k, batch.v)


def test_the_sentinel_is_of_middling_work_at_the_smallest_degree():
    packs = {
        (1, 0, pack): np.array([length, 64 - length]) for pack, length in enumerate([32, 1, 8])
    }
    packs[2, 0, 0] = np.array([128])
    targets = [Target(*key, "forward") for key in packs]
    assert middle_target(targets, packs) == Target(1, 0, 2, "forward")


@given(st.lists(st.lists(st.integers(1, 9000), min_size=1), min_size=1))
def test_segments_to_check_are_real_ones_that_are_cheap_enough(packs):
    chosen = segments_to_check([np.array(pack) for pack in packs])
    lengths = [length for pack in packs for length in pack]
    assert 1 <= len(chosen) <= 3 and chosen.max() <= 2048
    if min(lengths) <= 2048:
        assert set(chosen.tolist()) <= set(lengths) and min(lengths) in chosen


def test_a_wrong_kernel_stops_the_run():
    layer = Attention(4, 4, 16, True, "float32")
    heads = {1: timed_heads(layer, 1, None)}
    kernel = KERNELS["torch_cpu"]()
    batch = Workload(kernel, layer, heads, {1: 50}, seed=3).batch(1, np.array([30, 20]))
    assert check_output(kernel, batch, "float32") < 1e-6
    kernel.output = lambda returned: 1.01 * type(kernel).output(kernel, returned)
    with pytest.raises(InputError, match=r"torch_cpu is wrong on segments of \[30, 20\] tokens"):
        check_output(kernel, batch, "float32")
