"""The tensors that a kernel is timed on, the memory they need, and whether its output is right.

Data are standard normal, drawn once from a fixed seed and shared by all packs as leading parts of
the same buffers: the values do not matter to the time, and nothing is allocated between calls.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpbalance.attention import Attention, heads_per_rank
from cpbalance.errors import InputError
from cpbalance.kernels.base import BACKWARD, FORWARD, Batch, Kernel
from cpbalance.timing.device import Device
from cpbalance.timing.plan import Target

BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}

# Largest relative error of the output (its root mean square over that of the reference) by dtype:
# some 3 times the rounding of the inputs' dtype.
TOLERANCE = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 1e-5}
CHECK_TOKENS = 2048
CHECK_HEADS = 5
LESS_MEMORY = "use fewer tokens_per_gpu or fewer timed heads"


@dataclass(frozen=True)
class HeadCount:
    """Heads of one rank, and how many of them are timed."""

    rank_q_heads: int
    rank_kv_heads: int
    q_heads: int
    kv_heads: int


def timed_heads(attention: Attention, cp_size: int, limit: int | None) -> HeadCount:
    """Heads to time on a rank of a group of ``cp_size``: all of them, or at most ``limit``.

    Raises :class:`~cpbalance.errors.InputError` where ``cp_size`` does not fit the heads or
    ``limit`` query heads do not form whole groups of the key-value heads.
    """
    q_heads, kv_heads = heads_per_rank(attention, cp_size)
    if limit is not None and limit < 1:
        raise InputError(f"timed_heads is {limit}: give at least 1, or all")
    timed = q_heads if limit is None else min(limit, q_heads)
    group = q_heads // kv_heads
    if timed > group and timed % group:
        raise InputError(
            f"timed_heads is {limit}: at cp_size {cp_size} it must be at most {group} or a "
            f"multiple of it, as {group} query heads share a key-value head"
        )
    return HeadCount(q_heads, kv_heads, timed, max(1, timed // group))


def check_segments(cp_size: int, step: int, pack: int, segments: NDArray) -> None:
    """Raise :class:`~cpbalance.errors.InputError` for a pack that no kernel can be given."""
    if len(segments) == 0 or segments.min() < 1:
        raise InputError(
            f"pack {pack} of step {step} at cp_size {cp_size} has a segment of "
            f"{segments.min() if len(segments) else 'no'} tokens: segments need at least 1; "
            f"pack the lengths again"
        )


def predicted_bytes(
    tokens: int, heads: HeadCount, head_dim: int, dtype: str, directions: Iterable[str]
) -> int:
    """Bytes that timing one pack of ``tokens`` tokens takes: inputs, outputs, workspace.

    Forward: q, out, k, v and the float32 log-sum-exp. Backward adds the gradients of the output
    and of q, k, v, a float32 accumulator of q's gradient, and k's and v's gradients once more
    per query head, as FlashAttention keeps them under GQA.
    """
    element = BYTES[dtype]
    q, kv = tokens * heads.q_heads * head_dim, tokens * heads.kv_heads * head_dim
    total = element * 2 * (q + kv) + 4 * tokens * heads.q_heads
    if BACKWARD in directions:
        total += element * (2 * q + 2 * kv) + 4 * q + element * 2 * q
    return total


class Workload:
    """Buffers for the largest pack, and the batches cut from them.

    ``tokens`` maps a CP degree to the tokens of its largest pack. Tensors are made on the
    kernel's device; that of the output's gradient only where ``directions`` have backward.
    """

    def __init__(
        self,
        kernel: Kernel,
        attention: Attention,
        heads: Mapping[int, HeadCount],
        tokens: Mapping[int, int],
        seed: int,
        directions: tuple[str, ...] = (FORWARD,),
    ) -> None:
        import torch

        self._kernel, self._attention, self._heads = kernel, attention, heads
        dtype, dim = getattr(torch, attention.dtype), attention.head_dim
        generator = torch.Generator(device=kernel.device).manual_seed(seed)

        def buffer(kv: bool) -> Any:
            numbers = max(
                tokens[cp] * dim * (h.kv_heads if kv else h.q_heads) for cp, h in heads.items()
            )
            return torch.randn(numbers, generator=generator, device=kernel.device, dtype=dtype)

        self._q, self._k, self._v = (buffer(kv) for kv in (False, True, True))
        self._grad = buffer(False) if BACKWARD in directions else None

    def batch(self, cp_size: int, segments: NDArray) -> Batch:
        """The batch of one pack for one rank of a group of ``cp_size``."""
        import torch

        heads, lengths = self._heads[cp_size], tuple(int(n) for n in segments)
        total = sum(lengths)

        def cut(buffer: Any, count: int) -> Any:
            shape = (total, count, self._attention.head_dim)
            return buffer[: shape[0] * shape[1] * shape[2]].view(shape)

        bounds = np.concatenate([[0], np.cumsum(segments)]).astype(np.int32)
        return Batch(
            q=cut(self._q, heads.q_heads),
            k=cut(self._k, heads.kv_heads),
            v=cut(self._v, heads.kv_heads),
            cu_seqlens=torch.from_numpy(bounds).to(self._kernel.device),
            segment_tokens=lengths,
            max_seqlen=max(lengths),
            causal=self._attention.causal,
            grad_out=None if self._grad is None else cut(self._grad, heads.q_heads),
        )

    def call(self, target: Target, segments: NDArray) -> Callable[[], Any]:
        """What is timed for ``target``."""
        batch = self.batch(target.cp_size, segments)
        if target.direction == FORWARD:
            return self._kernel.forward(batch)
        return self._kernel.backward(batch)


def reference_attention(batch: Batch) -> Any:
    """Attention of a packed batch in float64 on the CPU: softmax(q kᵀ/√head_dim) v, per segment."""
    import torch

    q, k, v = (x.detach().to("cpu", torch.float64) for x in (batch.q, batch.k, batch.v))
    group = q.shape[1] // k.shape[1]
    outputs, start = [], 0
    for length in batch.segment_tokens:
        part = slice(start, start + length)
        qs = q[part].transpose(0, 1)
        ks, vs = (x[part].repeat_interleave(group, dim=1).transpose(0, 1) for x in (k, v))
        scores = qs @ ks.transpose(1, 2) / q.shape[2] ** 0.5
        if batch.causal:
            hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        outputs.append((scores.softmax(-1) @ vs).transpose(0, 1))
        start += length
    return torch.cat(outputs)


def segments_to_check(packs: Sequence[NDArray]) -> NDArray:
    """A few real segment lengths: the shortest, the middle, the longest that is cheap enough."""
    lengths = np.sort(np.concatenate(list(packs)))
    affordable = lengths[lengths <= CHECK_TOKENS]
    chosen = affordable[[0, len(affordable) // 2, -1]] if len(affordable) else [CHECK_TOKENS]
    return np.asarray(chosen, dtype=np.int64)


def relative_error(kernel: Kernel, batch: Batch) -> float:
    """Root mean square of the output's error over that of the float64 reference.

    The kernel computes all heads; the reference, which is slow, a few of them, first and last among
    them, so that a head that is given another one's keys does not pass.
    """
    q_heads, kv_heads = batch.q.shape[1], batch.k.shape[1]
    heads = np.unique(np.linspace(0, q_heads - 1, CHECK_HEADS).round().astype(int)).tolist()
    keys = [head * kv_heads // q_heads for head in heads]
    output = kernel.output(kernel.forward(batch)()).detach()[:, heads].cpu().double()
    few = replace(batch, q=batch.q[:, heads], k=batch.k[:, keys], v=batch.v[:, keys])
    expected = reference_attention(few)
    return float((output - expected).norm() / expected.norm())


def check_output(kernel: Kernel, batch: Batch, dtype: str) -> float:
    """The output's relative error; raises where it is more than the dtype explains."""
    error = relative_error(kernel, batch)
    if not error <= TOLERANCE[dtype]:
        raise InputError(
            f"kernel {kernel.name} is wrong on segments of {list(batch.segment_tokens)} tokens: "
            f"relative error {error:.1e} against float64, at most {TOLERANCE[dtype]:.0e} is due "
            f"to {dtype}; install another version of it"
        )
    return error


def check_batch(workload: Workload, packs: Sequence[NDArray], cp_size: int) -> Batch:
    """The batch that :func:`check_output` runs on, cut to fit the workload's buffers."""
    lengths = segments_to_check(packs)
    room = max(int(p.sum()) for p in packs)
    while len(lengths) > 1 and lengths.sum() > room:
        lengths = lengths[:-1]
    return workload.batch(cp_size, np.minimum(lengths, room))


def check_memory(
    device: Device,
    tokens: Mapping[int, int],
    heads: Mapping[int, HeadCount],
    attention: Attention,
    directions: tuple[str, ...],
) -> None:
    """Raise :class:`~cpbalance.errors.InputError` if the largest pack cannot fit the device."""
    needed = {
        cp: predicted_bytes(tokens[cp], h, attention.head_dim, attention.dtype, directions)
        for cp, h in heads.items()
    }
    cp_size = max(needed, key=lambda cp: needed[cp])
    free = device.free_memory()
    if needed[cp_size] > free:
        raise InputError(
            f"a pack of {tokens[cp_size]} tokens at cp_size {cp_size} needs "
            f"{needed[cp_size] / 2**30:.1f} GiB and {device.name} has {free / 2**30:.1f} GiB free; "
            f"{LESS_MEMORY}"
        )


@contextmanager
def memory_is_input(
    device: Device,
    tokens: Mapping[int, int],
    heads: Mapping[int, HeadCount],
    attention: Attention,
    directions: tuple[str, ...],
) -> Iterator[None]:
    """Context in which a device that runs out of memory is an InputError that says the sizes.

    What is free can shrink after :func:`check_memory`, and a kernel may want more than predicted.
    """
    import torch

    try:
        yield
    except torch.OutOfMemoryError:
        layer = (attention.head_dim, attention.dtype, directions)
        needed = {cp: predicted_bytes(tokens[cp], h, *layer) for cp, h in heads.items()}
        sizes = ", ".join(
            f"{tokens[cp]} tokens at cp_size {cp} ({size / 2**30:.1f} GiB predicted)"
            for cp, size in needed.items()
        )
        raise InputError(
            f"{device.name} ran out of memory; the largest packs have {sizes}; end other programs "
            f"on the device, or {LESS_MEMORY}"
        ) from None


def middle_target(
    targets: Sequence[Target], segments: Mapping[tuple[int, int, int], NDArray]
) -> Target:
    """The target of middling work at the smallest CP degree: a fair and cheap sentinel."""
    smallest = min(t.cp_size for t in targets)
    first = targets[0].direction
    among = [t for t in targets if t.cp_size == smallest and t.direction == first]

    def work(target: Target) -> float:
        lengths = segments[target.cp_size, target.step, target.pack]
        return float(np.square(lengths, dtype=np.float64).sum())

    return sorted(among, key=lambda t: (work(t), t))[len(among) // 2]
