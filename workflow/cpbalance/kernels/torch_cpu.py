"""PyTorch's flash attention on the CPU, segment by segment.

``scaled_dot_product_attention`` has no varlen form on the CPU, so a pack is a loop over its
segments; the flash backend is asked for by name, so that no other one answers in its place. It
blocks queries by 32 to 256 rows and keys by 512, computes causal segments block by block, and
runs on as many threads as torch is told to use.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from cpbalance.kernels.base import BACKWARD, FORWARD, Batch, Kernel


class TorchCpu(Kernel):
    """``torch.nn.functional.scaled_dot_product_attention`` with its CPU flash backend."""

    name = "torch_cpu"
    device = "cpu"
    modules = ("torch.nn.functional",)
    install = "install torch"
    dtypes = ("float32", "bfloat16")
    directions = (FORWARD, BACKWARD)
    head_dim_multiple = 1

    def session(self) -> AbstractContextManager[Any]:
        """The flash backend and no other: where it cannot run, torch raises an error."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        return sdpa_kernel(SDPBackend.FLASH_ATTENTION)

    def attribute(self) -> str:
        """Name of the function in its module."""
        return "scaled_dot_product_attention"

    def forward(self, batch: Batch) -> Callable[[], Any]:
        """Loop over the segments; returns their outputs as (1, q_heads, tokens, head_dim)."""
        attend, causal = self.function, batch.causal
        grouped = batch.q.shape[1] != batch.k.shape[1]
        lengths = list(batch.segment_tokens)
        parts = (
            [part.transpose(0, 1).unsqueeze(0) for part in x.split(lengths)]
            for x in (batch.q, batch.k, batch.v)
        )
        segments = list(zip(*parts, strict=True))

        def call() -> list[Any]:
            return [attend(*segment, is_causal=causal, enable_gqa=grouped) for segment in segments]

        return call

    def backward(self, batch: Batch) -> Callable[[], Any]:
        """The backward passes of all segments in one call; returns their gradients."""
        import torch

        leaves = [x.detach().requires_grad_() for x in (batch.q, batch.k, batch.v)]
        outputs = self.forward(replace(batch, q=leaves[0], k=leaves[1], v=leaves[2]))()
        parts = batch.grad_out.split(list(batch.segment_tokens))
        grads = [part.transpose(0, 1).unsqueeze(0) for part in parts]

        def call() -> Any:
            return torch.autograd.grad(outputs, leaves, grads, retain_graph=True)

        return call

    def output(self, returned: Any) -> Any:
        """The segments' outputs put together as (tokens, q_heads, head_dim)."""
        import torch

        return torch.cat([part.squeeze(0).transpose(0, 1) for part in returned])
