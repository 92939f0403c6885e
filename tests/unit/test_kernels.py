"""Adapters held to the signatures of the real packages, and to attention in float64."""

import ast
import inspect
import subprocess
import sys
import zipfile
from functools import cache

import numpy as np
import pytest

from cpbalance.kernels import KERNELS
from cpbalance.kernels.base import Batch
from cpbalance.timing.workload import reference_attention, relative_error

torch = pytest.importorskip("torch", reason="the kernels are torch's")

WHEELS = {
    # Wheel -> the file within it and the adapter that calls its flash_attn_varlen_func.
    "fa3-fwd==0.0.3": ("fa3_fwd_interface.py", "fa3"),
    "flash-attn-4==4.0.0b36": ("flash_attn/cute/interface.py", "fa4"),
}
# FlashAttention 2.8 is published as source alone, which a machine without CUDA cannot build: its
# signature, from flash_attn/flash_attn_interface.py.
FA2_SIGNATURE = """
def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
    softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
    deterministic=False, return_attn_probs=False, block_table=None,
): ...
"""


@pytest.fixture(scope="session")
def wheel_source(tmp_path_factory):
    """Text of a Python file in a published wheel; skips where it cannot be downloaded."""

    @cache
    def read(wheel):
        folder = tmp_path_factory.mktemp("wheel")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--pre"]
        command += ["--only-binary", ":all:", "--dest", str(folder), wheel]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            pytest.skip(f"{wheel} took over a minute to download")
        if done.returncode:
            pytest.skip(f"{wheel} cannot be downloaded: {done.stderr.strip().splitlines()[-1:]}")
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
            return archive.read(WHEELS[wheel][0]).decode()

    return read


def with_signature(source, name, body):
    """A function that takes what ``name`` in ``source`` takes, and returns ``body(arguments)``."""
    tree = ast.parse(source)
    (found,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    arguments = found.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        argument.annotation = None
    namespace = {"body": body}
    exec(f"def {name}({ast.unparse(arguments)}):\n    return body(locals())", namespace)
    return namespace[name]


def make_batch(causal, kv_heads=2, lengths=(5, 1, 17), head_dim=128, q_heads=4):
    generator = torch.Generator().manual_seed(0)
    total = sum(lengths)

    def normal(heads):
        return torch.randn(total, heads, head_dim, generator=generator)

    bounds = torch.tensor(np.concatenate([[0], np.cumsum(lengths)]), dtype=torch.int32)
    return Batch(
        q=normal(q_heads),
        k=normal(kv_heads),
        v=normal(kv_heads),
        cu_seqlens=bounds,
        segment_tokens=tuple(lengths),
        max_seqlen=max(lengths),
        causal=causal,
        grad_out=normal(q_heads),
    )


def attention_by_arguments(returns_pair):
    """What a varlen function computes, from the arguments that it was bound to."""

    def body(given):
        q, k, v = given["q"], given["k"], given["v"]
        bounds = given["cu_seqlens_q"]
        assert bounds.dtype == torch.int32 and bounds is given["cu_seqlens_k"]
        lengths = tuple(torch.diff(bounds).tolist())
        for key in ("max_seqlen_q", "max_seqlen_k"):
            assert type(given[key]) is int and given[key] == max(lengths)
        assert not given.get("qv") and not given.get("seqused_q")
        batch = Batch(q, k, v, bounds, lengths, max(lengths), given["causal"])
        out = reference_attention(batch)
        return (out, None) if returns_pair else out

    return body


def check_values(kernel, function, causal, kv_heads):
    kernel._function = function
    batch = make_batch(causal, kv_heads)
    output = kernel.output(kernel.forward(batch)())
    torch.testing.assert_close(output, reference_attention(batch), rtol=0, atol=0)


@pytest.mark.parametrize("wheel", list(WHEELS))
def test_adapter_calls_the_published_wheel_as_it_wants_to_be_called(wheel, wheel_source):
    name = WHEELS[wheel][1]
    body = attention_by_arguments(returns_pair=name == "fa4")
    function = with_signature(wheel_source(wheel), "flash_attn_varlen_func", body)
    for causal in (False, True):
        for kv_heads in (1, 2, 4):
            check_values(KERNELS[name](), function, causal, kv_heads)


def test_the_fa4_wheel_returns_a_pair_and_the_fa3_wheel_an_output(wheel_source):
    def returns(wheel, owner):
        tree = ast.parse(wheel_source(wheel))
        (group,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == owner]
        forward = next(n for n in group.body if getattr(n, "name", "") == "forward")
        found = [n.value for n in ast.walk(forward) if isinstance(n, ast.Return)]
        return {ast.unparse(value) for value in found if value is not None}

    assert returns("flash-attn-4==4.0.0b36", "FlashAttnVarlenFunc") == {"(out, lse)"}
    assert returns("fa3-fwd==0.0.3", "FlashAttnVarlenFunc") == {
        "(out, softmax_lse) if return_softmax else out"
    }


@pytest.mark.parametrize("causal", [False, True])
def test_adapter_calls_flash_attention_2_as_it_wants_to_be_called(causal):
    body = attention_by_arguments(returns_pair=False)
    function = with_signature(FA2_SIGNATURE, "flash_attn_varlen_func", body)
    check_values(KERNELS["fa2"](), function, causal, 2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kv_heads", [2, 4])
def test_adapter_calls_torchs_varlen_attention_as_it_wants_to_be_called(causal, kv_heads):
    varlen = pytest.importorskip("torch.nn.attention.varlen", reason="needs a newer torch")
    signature = inspect.signature(varlen.varlen_attn)

    def function(*positional, **named):
        bound = signature.bind(*positional, **named)
        bound.apply_defaults()
        given = bound.arguments
        assert given["enable_gqa"] == (kv_heads != 4)
        # The function's own rule for a causal mask.
        names = {"q": "query", "k": "key", "v": "value", "cu_seqlens_q": "cu_seq_q"}
        names |= {"cu_seqlens_k": "cu_seq_k", "max_seqlen_q": "max_q", "max_seqlen_k": "max_k"}
        arguments = {ours: given[theirs] for ours, theirs in names.items()}
        arguments["causal"] = given["window_size"] == (-1, 0)
        return attention_by_arguments(returns_pair=False)(arguments)

    check_values(KERNELS["torch_varlen"](), function, causal, kv_heads)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_the_cpu_kernel_agrees_with_float64(dtype, causal, kv_heads):
    kernel = KERNELS["torch_cpu"]()
    batch = make_batch(causal, kv_heads, lengths=(700, 1, 33), head_dim=64)
    small = {k: getattr(batch, k).to(getattr(torch, dtype)) for k in ("q", "k", "v")}
    batch = Batch(**(vars(batch) | small))
    with kernel.session():
        output = kernel.output(kernel.forward(batch)()).double()
    expected = reference_attention(batch)
    error = (output - expected).norm() / expected.norm()
    assert error < {"float32": 1e-6, "bfloat16": 5e-3}[dtype]


@pytest.mark.parametrize(("q_heads", "kv_heads"), [(16, 16), (16, 4), (16, 1), (3, 3)])
def test_a_kernel_is_right_or_wrong_by_a_few_of_its_heads(q_heads, kv_heads):
    kernel = KERNELS["torch_cpu"]()
    batch = make_batch(True, kv_heads, lengths=(60, 5), head_dim=16, q_heads=q_heads)
    assert relative_error(kernel, batch) < 1e-6
    # Keys of another head, the mask left out, the segments' border ignored.
    if kv_heads > 1:
        swapped = Batch(**(vars(batch) | {"k": batch.k.flip(1)}))
        assert relative_error(Instead(kernel, swapped), batch) > 0.1
    unmasked = Batch(**(vars(batch) | {"causal": False}))
    assert relative_error(Instead(kernel, unmasked), batch) > 0.1
    joined = Batch(**(vars(batch) | {"segment_tokens": (65,)}))
    assert relative_error(Instead(kernel, joined), batch) > 0.01


class Instead:
    """A kernel that is given another batch than it was asked to compute."""

    def __init__(self, kernel, batch):
        self._kernel, self._batch, self.output = kernel, batch, kernel.output

    def forward(self, batch):
        return self._kernel.forward(self._batch)


@pytest.mark.parametrize("causal", [False, True])
def test_the_reference_is_what_torch_computes_in_float64(causal):
    batch = make_batch(causal, kv_heads=4, lengths=(9,))
    parts = (x.double().transpose(0, 1) for x in (batch.q, batch.k, batch.v))
    expected = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=causal)
    torch.testing.assert_close(reference_attention(batch), expected.transpose(0, 1))


@pytest.mark.parametrize("causal", [False, True])
def test_the_cpu_kernels_backward_gives_the_gradients(causal):
    batch = make_batch(causal, kv_heads=4, lengths=(40, 3), head_dim=16)
    found = KERNELS["torch_cpu"]().backward(batch)()
    leaves = [getattr(batch, k).double().requires_grad_() for k in ("q", "k", "v")]
    outputs = [
        torch.nn.functional.scaled_dot_product_attention(
            *(x[part].transpose(0, 1) for x in leaves), is_causal=causal
        ).transpose(0, 1)
        for part in (slice(0, 40), slice(40, 43))
    ]
    expected = torch.autograd.grad(torch.cat(outputs), leaves, batch.grad_out.double())
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-5)
