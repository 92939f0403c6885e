"""The device that kernels are timed on: its clock, its cache, its state, its name.

Everything else about timing is the same for every device. The CPU is timed by the CPU time of
the calling thread, so that other programs on the machine do not count, and has no cache flush:
its packs are far larger than its caches.
"""

import gc
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

# What tells two devices apart that are alike in all that a time depends on.
IDENTITY = ("host", "uuid", "system", "memory_bytes")


@dataclass(frozen=True)
class State:
    """State of the device at one moment; None where the device does not tell."""

    clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    other_processes: int | None = None


class Device(Protocol):
    """What a timing run needs of a device."""

    kind: str
    name: str
    identity: str  # which one it is among devices of that name
    clock: str  # what a measured second is, in words
    budget_clock: str  # what a second of the budget is, in words

    def measure(self, call: Callable[[], Any]) -> float:
        """Seconds that one call takes on the device."""

    def flush_cache(self) -> None:
        """Leave nothing useful in the device's cache."""

    def spent(self) -> float:
        """Seconds of the budget clock, from an arbitrary start."""

    def state(self) -> State:
        """State of the device now."""

    def throttle_reasons(self) -> tuple[str, ...] | None:
        """Reasons for which the device holds its clock down now, None where it does not tell.

        Cheap enough for every call.
        """

    def free_memory(self) -> int:
        """Bytes that can be allocated."""

    def environment(self) -> dict[str, Any]:
        """What identifies the device and its software."""

    def quiet(self) -> Any:
        """Context in which measurements are made."""


class CpuDevice:
    """One thread of the CPU, timed by its CPU time."""

    kind = "cpu"
    clock = "CPU seconds of one thread"
    budget_clock = "CPU seconds of the process"

    def __init__(self) -> None:
        self.name = cpu_name()
        self.identity = platform.node()

    def measure(self, call: Callable[[], Any]) -> float:
        """CPU seconds of this thread within ``call``."""
        start = time.thread_time_ns()
        returned = call()
        elapsed = time.thread_time_ns() - start
        del returned  # freeing the output is not the kernel's time
        return elapsed * 1e-9

    def flush_cache(self) -> None:
        """Nothing: a pack displaces the caches by itself."""

    def spent(self) -> float:
        """CPU seconds of this process."""
        return time.process_time()

    def state(self) -> State:
        """Nothing that an unprivileged process could trust."""
        return State()

    def throttle_reasons(self) -> None:
        """Unknown: a CPU does not tell."""

    def free_memory(self) -> int:
        """Bytes that the system calls available, or free pages where it does not say."""
        try:
            lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
            kibibytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable"))
        except (OSError, StopIteration):
            return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return int(kibibytes) * 1024

    def environment(self) -> dict[str, Any]:
        """Name of the CPU, threads used, torch."""
        import torch

        return {
            "device": self.name,
            "threads": 1,
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            **host_environment(),
        }

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """One thread and no garbage collection, both put back afterwards."""
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with no_garbage_collection():
                yield
        finally:
            torch.set_num_threads(threads)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect now, then not again until the block ends."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def cpu_name() -> str:
    """Model name of the CPU, as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def likeness(environment: Mapping[str, Any]) -> dict[str, Any]:
    """What a device's times depend on: its environment without what only names the device.

    Model, clock and power limits, driver, CUDA and torch are in it, the host and the UUID are not.
    """
    return {key: value for key, value in environment.items() if key not in IDENTITY}


def host_environment() -> dict[str, Any]:
    """Host, system and software, the same on every device."""
    import numpy as np
    import torch

    return {
        "host": platform.node(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def open_device(kind: str) -> Device:
    """The device of a kind, "cpu" or "cuda"; raises InputError where there is none."""
    if kind == "cpu":
        return CpuDevice()
    from cpbalance.timing.cuda import open_cuda

    return open_cuda()
