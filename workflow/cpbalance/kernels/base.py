"""What a kernel adapter is: one attention function, what it supports, and how it is called.

A packed batch is laid out as the varlen functions of FlashAttention want it: ``q`` is
(tokens, q_heads, head_dim), ``k`` and ``v`` are (tokens, kv_heads, head_dim), and ``cu_seqlens``
is the int32 running sum of the segment lengths, starting at 0. An adapter turns that into a
callable without arguments, so that what is timed is the bare function.
"""

import hashlib
import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, ClassVar

from cpbalance.attention import Attention
from cpbalance.errors import InputError

FORWARD, BACKWARD = "forward", "backward"
DTYPES = ("bfloat16", "float16", "float32")


@dataclass(frozen=True)
class Batch:
    """Tensors of one packed batch on the kernel's device, ready to be called.

    ``segment_tokens`` are the lengths as Python integers (no device round trip inside a timed
    call); ``cu_seqlens`` is the same on the device; ``max_seqlen`` is an int, since a tensor
    makes some kernels recompile. ``grad_out`` has the shape of ``q`` and is there for backward.
    """

    q: Any
    k: Any
    v: Any
    cu_seqlens: Any
    segment_tokens: tuple[int, ...]
    max_seqlen: int
    causal: bool
    grad_out: Any = None


@dataclass(frozen=True)
class Probe:
    """What the machine offers: ``device`` is "cpu" or "cuda", ``capability`` (major, minor)."""

    device: str
    name: str
    capability: tuple[int, int] | None = None


class Kernel(ABC):
    """One attention kernel by name. Class attributes say what it supports."""

    name: ClassVar[str]
    device: ClassVar[str]
    # Modules to try in order, and what to install where none is there.
    modules: ClassVar[tuple[str, ...]]
    install: ClassVar[str]
    dtypes: ClassVar[tuple[str, ...]]
    directions: ClassVar[tuple[str, ...]]
    min_head_dim: ClassVar[int] = 1
    max_head_dim: ClassVar[int] = 256
    head_dim_multiple: ClassVar[int] = 8
    # Compute capabilities, both ends included; None where there is no GPU.
    capabilities: ClassVar[tuple[tuple[int, int], tuple[int, int]] | None] = None

    def __init__(self) -> None:
        self._function: Callable[..., Any] | None = None
        self._module = ""

    # -- what the adapter has to say ------------------------------------------------------------

    @abstractmethod
    def forward(self, batch: Batch) -> Callable[[], Any]:
        """The bare call, bound to ``batch``; what it returns holds the output somewhere."""

    def backward(self, batch: Batch) -> Callable[[], Any]:
        """The backward pass alone, of a forward pass made now; returns the gradients of q, k, v."""
        import torch

        leaves = [x.detach().requires_grad_() for x in (batch.q, batch.k, batch.v)]
        out = self.output(self.forward(replace(batch, q=leaves[0], k=leaves[1], v=leaves[2]))())
        grad_out = batch.grad_out

        def call() -> Any:
            return torch.autograd.grad(out, leaves, grad_out, retain_graph=True)

        return call

    def session(self) -> AbstractContextManager[Any]:
        """Context in which all calls are made."""
        return nullcontext()

    def output(self, returned: Any) -> Any:
        """The (tokens, q_heads, head_dim) output within what the bare call returned."""
        return returned

    def attribute(self) -> str:
        """Name of the function in its module."""
        return "flash_attn_varlen_func"

    def backward_of(self, module: str) -> bool:
        """Whether ``module``, once imported, can also run backward."""
        return BACKWARD in self.directions

    # -- loading --------------------------------------------------------------------------------

    @property
    def module(self) -> str:
        """The module that the function came from, empty before :meth:`load`."""
        return self._module

    @property
    def function(self) -> Callable[..., Any]:
        """The kernel's function, loaded on first use."""
        if self._function is None:
            self.load()
        assert self._function is not None
        return self._function

    def load(self) -> None:
        """Import the kernel's function.

        Raises :class:`~cpbalance.errors.InputError` with what to install where no module has it.
        """
        failures = []
        for module in self.modules:
            try:
                self._function = getattr(importlib.import_module(module), self.attribute())
            # A package for another CUDA raises anything on import; the reason is passed on.
            except Exception as error:
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                failures.append(f"{module}: {reason}")
            else:
                self._module = module
                return
        raise InputError(
            f"kernel {self.name} cannot be loaded ({'; '.join(failures)}); {self.install}"
        )

    def unavailable(self, probes: dict[str, Probe]) -> str | None:
        """Why the kernel cannot run on this machine, None if it can."""
        probe = probes.get(self.device)
        if probe is None:
            return (
                f"it needs a {self.device.upper()} device and this machine has none that torch can "
                f"use; run it on one, or use kernel torch_cpu"
            )
        if self.capabilities is not None and probe.capability is not None:
            low, high = self.capabilities
            if not low <= probe.capability <= high:
                return (
                    f"{probe.name} has compute capability {_dotted(probe.capability)}, it runs on "
                    f"{_dotted(low)} to {_dotted(high)}"
                )
        try:
            self.load()
        except InputError as error:
            return str(error)
        return None

    def check(
        self, attention: Attention, directions: tuple[str, ...], probe: Probe | None = None
    ) -> None:
        """Raise :class:`~cpbalance.errors.InputError` for a setting the kernel does not support.

        ``probe`` is the device that it would run on, where that is known.
        """
        if attention.dtype not in self.dtypes:
            raise InputError(
                f"dtype is {attention.dtype}: kernel {self.name} runs {', '.join(self.dtypes)}"
            )
        dim, low, high = attention.head_dim, self.min_head_dim, self.max_head_dim
        if not low <= dim <= high or dim % self.head_dim_multiple:
            raise InputError(
                f"head_dim is {dim}: kernel {self.name} runs {low} to {high} in multiples of "
                f"{self.head_dim_multiple}"
            )
        for direction in directions:
            if direction not in self.directions:
                raise InputError(
                    f"direction is {direction}: kernel {self.name} runs "
                    f"{', '.join(self.directions)}"
                )
        if BACKWARD in directions and not self.backward_of(self.module):
            raise InputError(
                f"direction is backward: {self.module} has the forward pass alone; {self.install}"
            )

    def supports(self) -> str:
        """What it runs, in a line."""
        capabilities = (
            ""
            if self.capabilities is None
            else f"; compute capability {_dotted(self.capabilities[0])} to "
            f"{_dotted(self.capabilities[1])}"
        )
        return (
            f"{' and '.join(self.directions)}; {', '.join(self.dtypes)}; head_dim "
            f"{self.min_head_dim} to {self.max_head_dim} in multiples of {self.head_dim_multiple}; "
            f"GQA{capabilities}"
        )

    def provenance(self) -> dict[str, str | None]:
        """Where the kernel came from: module, package, version, hash of the installed wheel."""
        return {"name": self.name, "module": self.module, **package_identity(self.module)}


def package_identity(module: str) -> dict[str, str | None]:
    """Package, version and content hash of an installed module.

    ``wheel_sha256`` is what the installer noted; where it noted nothing, ``record_sha256``, the
    digest of the package's list of file hashes, says as much about what is installed.
    """
    unknown = {"package": None, "version": None, "wheel_sha256": None, "record_sha256": None}
    top = module.split(".")[0]
    packages = metadata.packages_distributions().get(top) if top else None
    if not packages:
        return unknown
    installed = metadata.distribution(packages[0])
    record = installed.read_text("RECORD")
    direct_url = json.loads(installed.read_text("direct_url.json") or "{}")
    hashes = direct_url.get("archive_info", {}).get("hashes", {})
    return {
        "package": packages[0],
        "version": installed.version,
        "wheel_sha256": hashes.get("sha256"),
        "record_sha256": hashlib.sha256(record.encode()).hexdigest() if record else None,
    }


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"
