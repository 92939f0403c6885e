"""Kernels that take a whole pack in one call: the varlen functions of FlashAttention and torch.

All are called with ``max_seqlen`` as an integer, since a tensor costs a device round trip or a
recompilation, and with the same ``cu_seqlens`` for queries and keys.
"""

from collections.abc import Callable
from typing import Any

from cpbalance.attention import Attention
from cpbalance.errors import InputError
from cpbalance.kernels.base import BACKWARD, FORWARD, Batch, Kernel, Probe


def _positional_call(attend: Callable[..., Any], batch: Batch) -> Callable[[], Any]:
    """The call that FlashAttention-2 and 3 share; nothing is looked up while it is timed."""
    q, k, v = batch.q, batch.k, batch.v
    bounds, longest, causal = batch.cu_seqlens, batch.max_seqlen, batch.causal

    def call() -> Any:
        return attend(q, k, v, bounds, bounds, longest, longest, causal=causal)

    return call


class FlashAttention3(Kernel):
    """FlashAttention-3 for Hopper: the prebuilt forward-only wheel, else a source build."""

    name = "fa3"
    device = "cuda"
    modules = ("fa3_fwd_interface", "flash_attn_3.flash_attn_interface", "flash_attn_interface")
    install = (
        "install fa3-fwd==0.0.3 (forward only; needs torch 2.11 or newer), or build the hopper "
        "folder of FlashAttention (forward and backward)"
    )
    dtypes = ("bfloat16", "float16")
    directions = (FORWARD, BACKWARD)
    min_head_dim = 64
    capabilities = ((9, 0), (9, 0))

    @property
    def _forward_only(self) -> bool:
        return self.module == "fa3_fwd_interface"

    def backward_of(self, module: str) -> bool:
        """The prebuilt wheel leaves the backward pass out."""
        return module != "fa3_fwd_interface"

    def check(
        self, attention: Attention, directions: tuple[str, ...], probe: Probe | None = None
    ) -> None:
        """As for every kernel; the prebuilt wheel leaves float16 out."""
        super().check(attention, directions, probe)
        if self._forward_only and attention.dtype != "bfloat16":
            raise InputError(
                f"dtype is {attention.dtype}: the prebuilt fa3-fwd runs bfloat16 alone; build "
                f"FlashAttention's hopper folder for {attention.dtype}"
            )

    def forward(self, batch: Batch) -> Callable[[], Any]:
        """The bare varlen call; returns the output."""
        return _positional_call(self.function, batch)

    def output(self, returned: Any) -> Any:
        """Some builds return the log-sum-exp beside the output."""
        return returned[0] if isinstance(returned, tuple) else returned


class FlashAttention2(Kernel):
    """FlashAttention-2 for Ampere and later."""

    name = "fa2"
    device = "cuda"
    modules = ("flash_attn",)
    install = "install flash-attn 2.8 or newer"
    dtypes = ("bfloat16", "float16")
    directions = (FORWARD, BACKWARD)
    capabilities = ((8, 0), (12, 9))

    def forward(self, batch: Batch) -> Callable[[], Any]:
        """The bare varlen call; returns the output."""
        return _positional_call(self.function, batch)


class FlashAttention4(Kernel):
    """FlashAttention-4, compiled at run time for Ampere to Blackwell."""

    name = "fa4"
    device = "cuda"
    modules = ("flash_attn.cute",)
    install = "install flash-attn-4 (a pre-release: pip install --pre flash-attn-4)"
    dtypes = ("bfloat16", "float16")
    directions = (FORWARD, BACKWARD)
    min_head_dim = 8
    capabilities = ((8, 0), (12, 9))

    def check(
        self, attention: Attention, directions: tuple[str, ...], probe: Probe | None = None
    ) -> None:
        """As for every kernel; on Blackwell data-centre GPUs some head dimensions are missing."""
        super().check(attention, directions, probe)
        major = probe.capability[0] if probe is not None and probe.capability else None
        if major in (10, 11) and 128 < attention.head_dim < 256:
            raise InputError(
                f"head_dim is {attention.head_dim}: on {probe.name} kernel fa4 runs 8 to 128, and "
                f"256"
            )

    def forward(self, batch: Batch) -> Callable[[], Any]:
        """The bare varlen call, by keywords (the fourth positional is another tensor)."""
        attend, q, k, v = self.function, batch.q, batch.k, batch.v
        bounds, longest, causal = batch.cu_seqlens, batch.max_seqlen, batch.causal

        def call() -> Any:
            return attend(
                q,
                k,
                v,
                cu_seqlens_q=bounds,
                cu_seqlens_k=bounds,
                max_seqlen_q=longest,
                max_seqlen_k=longest,
                causal=causal,
            )

        return call

    def output(self, returned: Any) -> Any:
        """The first of (output, log-sum-exp)."""
        return returned[0]


class TorchVarlen(Kernel):
    """PyTorch's own varlen attention, a FlashAttention-2 kernel on CUDA."""

    name = "torch_varlen"
    device = "cuda"
    modules = ("torch.nn.attention.varlen",)
    install = "install torch 2.12 or newer, with CUDA"
    dtypes = ("bfloat16", "float16")
    directions = (FORWARD, BACKWARD)
    capabilities = ((8, 0), (12, 9))

    def attribute(self) -> str:
        """Name of the function in its module."""
        return "varlen_attn"

    def forward(self, batch: Batch) -> Callable[[], Any]:
        """The bare varlen call; a causal mask is a window without a right half."""
        attend, q, k, v = self.function, batch.q, batch.k, batch.v
        bounds, longest = batch.cu_seqlens, batch.max_seqlen
        window = (-1, 0) if batch.causal else (-1, -1)
        grouped = q.shape[1] != k.shape[1]

        def call() -> Any:
            return attend(
                q, k, v, bounds, bounds, longest, longest, window_size=window, enable_gqa=grouped
            )

        return call
