"""Timing on a CUDA device: events for the clock, a flushed L2, the driver for the state.

A call is enclosed by two events on its stream. Before it, a buffer of twice the L2's size is
written, so that no input is left in the L2, and the device is held for a moment, so that the host
has queued the whole call before the first event passes: what is measured is the device's time, not
Python's, as in a training step whose launches run ahead.
"""

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cpbalance.errors import InputError
from cpbalance.timing.device import State, host_environment, no_garbage_collection
from cpbalance.timing.nvml import open_nvml, throttle_names

FLUSH_OVER_L2 = 2
# Clock cycles for which the device is held: about 0.25 ms, more than any launch takes.
HOLD_CYCLES = 500_000


class CudaDevice:
    """The current CUDA device."""

    kind = "cuda"
    clock = "CUDA events around a call"
    budget_clock = "seconds of the GPU held"

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.name = self._properties.name
        self.uuid = f"GPU-{self._properties.uuid}"
        self.identity = f"{platform.node()} {self.uuid}"
        self._nvml = open_nvml(self.uuid)
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._flush: Any = None

    def measure(self, call: Callable[[], Any]) -> float:
        """Seconds between the events around ``call``."""
        # Not part of torch's public interface, but what its own tests hold a stream with.
        self._torch.cuda._sleep(HOLD_CYCLES)
        self._start.record()
        returned = call()
        self._end.record()
        self._end.synchronize()
        elapsed = self._start.elapsed_time(self._end) * 1e-3
        del returned
        return elapsed

    def flush_cache(self) -> None:
        """Write more than the L2 holds."""
        if self._flush is None:
            self._flush = self._torch.empty(self.flush_bytes, dtype=self._torch.int8, device="cuda")
        self._flush.zero_()

    @property
    def flush_bytes(self) -> int:
        """Bytes written before a call."""
        return FLUSH_OVER_L2 * self._properties.L2_cache_size

    def spent(self) -> float:
        """Wall-clock seconds: a GPU held is a GPU used."""
        return time.monotonic()

    def state(self) -> State:
        """State of the GPU now, as its driver has it."""
        return State() if self._nvml is None else self._nvml.state()

    def throttle_reasons(self) -> tuple[str, ...] | None:
        """Reasons for which the driver holds the clock down now, None where it does not tell."""
        mask = None if self._nvml is None else self._nvml.throttle_mask()
        return None if mask is None else throttle_names(mask)

    def free_memory(self) -> int:
        """Bytes that can be allocated, less the buffer that flushes the cache."""
        free, _ = self._torch.cuda.mem_get_info()
        return free - self.flush_bytes

    def environment(self) -> dict[str, Any]:
        """Name and identity of the GPU, its software and limits."""
        found = self._properties
        return {
            "device": self.name,
            "uuid": self.uuid,
            "capability": f"{found.major}.{found.minor}",
            "multiprocessors": found.multi_processor_count,
            "memory_bytes": found.total_memory,
            "l2_bytes": found.L2_cache_size,
            "flush_bytes": self.flush_bytes,
            "cuda": self._torch.version.cuda,
            "driver": None if self._nvml is None else self._nvml.driver(),
            **({} if self._nvml is None else self._nvml.limits()),
            **host_environment(),
        }

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """No garbage collection, no gradients kept, everything on the device done first."""
        self._torch.cuda.synchronize()
        with no_garbage_collection():
            yield


def open_cuda() -> CudaDevice:
    """The CUDA device; raises :class:`~cpbalance.errors.InputError` where there is none."""
    import torch

    if not torch.cuda.is_available():
        raise InputError(
            "no CUDA device that torch can use; run on a GPU machine with a CUDA build of torch, "
            "or use kernel torch_cpu"
        )
    return CudaDevice(torch)
