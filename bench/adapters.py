"""What an adapter adds to a call of the bare function, in microseconds.

The function is one that does nothing, so all that is left is how it is called: by the adapter's
bound call, and directly with its arguments at hand. The CPU kernel is called segment by segment;
its figure is for a pack of 8 segments, beside a bare loop over them.
"""

import timeit

import pandas as pd
import torch

from cpbalance.kernels import KERNELS
from cpbalance.kernels.base import Batch

CALLS, REPEATS = 20_000, 7
SEGMENTS = 8


def _batch() -> Batch:
    lengths = (16,) * SEGMENTS
    q, k, v = (torch.zeros(sum(lengths), 4, 16) for _ in range(3))
    bounds = torch.arange(SEGMENTS + 1, dtype=torch.int32) * 16
    return Batch(q, k, v, bounds, lengths, 16, causal=True)


def _nothing(*positional: object, **named: object) -> None:
    """Stands for the kernel's function."""


def _microseconds(call: object) -> float:
    return min(timeit.repeat(call, number=CALLS, repeat=REPEATS)) / CALLS * 1e6


def run() -> pd.DataFrame:
    """One row a kernel."""
    batch = _batch()
    q, k, v, bounds, longest = batch.q, batch.k, batch.v, batch.cu_seqlens, batch.max_seqlen
    parts = [tuple(x[:16].transpose(0, 1).unsqueeze(0) for x in (q, k, v))] * SEGMENTS

    def bare() -> None:
        _nothing(q, k, v, bounds, bounds, longest, longest, causal=True)

    def bare_loop() -> None:
        for a, b, c in parts:
            _nothing(a, b, c, is_causal=True, enable_gqa=False)

    rows = []
    for name, adapter in KERNELS.items():
        kernel = adapter()
        kernel._function = _nothing
        direct = _microseconds(bare_loop if name == "torch_cpu" else bare)
        through = _microseconds(kernel.forward(batch))
        rows.append(
            {"kernel": name, "bare_us": direct, "adapter_us": through, "adds_us": through - direct}
        )
    return pd.DataFrame(rows)
