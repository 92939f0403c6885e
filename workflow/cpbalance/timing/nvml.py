"""What the NVIDIA driver says of a GPU: clocks, power, temperature, throttling, processes.

Read from ``libnvidia-ml.so.1``, which comes with the driver, so that no Python package is needed.
Where the library or one of its answers is missing, the answer is None: a virtual GPU may refuse.
"""

import ctypes
from collections.abc import Callable
from typing import Any

from cpbalance.timing.device import State

LIBRARY = "libnvidia-ml.so.1"
SM_CLOCK, MEMORY_CLOCK = 1, 2
TEMPERATURE_GPU = 0
# Reasons of nvmlClocksEventReasons that hold the clock below what was asked for. Left out: an idle
# GPU (1), clocks that an administrator has set (2), and settings synchronised with a display (256).
THROTTLE_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
_PROCESSES = 64


class _Process(ctypes.Structure):
    """nvmlProcessInfo_v2_t."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used_memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def throttle_names(mask: int) -> tuple[str, ...]:
    """Names of the throttle reasons that a mask of event reasons holds."""
    return tuple(name for bit, name in THROTTLE_REASONS.items() if mask & bit)


class Nvml:
    """The driver's view of one GPU, named by its UUID ("GPU-…")."""

    def __init__(self, library: Any, uuid: str) -> None:
        self._library = library
        self._handle = ctypes.c_void_p()
        library.nvmlInit_v2()
        handle = ctypes.byref(self._handle)
        self.known = library.nvmlDeviceGetHandleByUUID(uuid.encode(), handle) == 0

    def _number(self, function: str, *arguments: Any, kind: Any = ctypes.c_uint) -> int | None:
        """Answer of a call that fills one number, None where it fails or is not there."""
        call: Callable[..., int] | None = getattr(self._library, function, None)
        if call is None or not self.known:
            return None
        value = kind()
        status = call(self._handle, *arguments, ctypes.byref(value))
        return int(value.value) if status == 0 else None

    def throttle_mask(self) -> int | None:
        """Mask of the reasons that shape the clock now, None where the driver does not tell."""
        for name in (
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",
        ):
            mask = self._number(name, kind=ctypes.c_ulonglong)
            if mask is not None:
                return mask
        return None

    def state(self) -> State:
        """Clock, power, temperature and the number of other processes on the GPU."""
        power = self._number("nvmlDeviceGetPowerUsage")
        clock = self._number("nvmlDeviceGetClockInfo", ctypes.c_int(SM_CLOCK))
        heat = self._number("nvmlDeviceGetTemperature", ctypes.c_int(TEMPERATURE_GPU))
        return State(
            clock_mhz=None if clock is None else float(clock),
            power_w=None if power is None else power / 1000,
            temperature_c=None if heat is None else float(heat),
            other_processes=self.other_processes(),
        )

    def other_processes(self) -> int | None:
        """Processes that compute on the GPU besides this one, None where unknown."""
        call = getattr(self._library, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        if call is None or not self.known:
            return None
        count, found = ctypes.c_uint(_PROCESSES), (_Process * _PROCESSES)()
        if call(self._handle, ctypes.byref(count), found) != 0:
            return None
        # One of them is this one, in a container perhaps under another number. Where not even
        # this one is seen, no others would be.
        return count.value - 1 if count.value else None

    def limits(self) -> dict[str, int | float | None]:
        """Highest clocks and power limit."""
        power = self._number("nvmlDeviceGetEnforcedPowerLimit")
        return {
            "max_sm_clock_mhz": self._number("nvmlDeviceGetMaxClockInfo", ctypes.c_int(SM_CLOCK)),
            "max_memory_clock_mhz": self._number(
                "nvmlDeviceGetMaxClockInfo", ctypes.c_int(MEMORY_CLOCK)
            ),
            "power_limit_w": None if power is None else power / 1000,
        }

    def driver(self) -> str | None:
        """Version of the driver."""
        text = ctypes.create_string_buffer(96)
        call = getattr(self._library, "nvmlSystemGetDriverVersion", None)
        if call is None or call(text, ctypes.c_uint(len(text))) != 0:
            return None
        return text.value.decode()


def open_nvml(uuid: str) -> Nvml | None:
    """The driver's view of a GPU, None on a machine without the library."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    return Nvml(library, uuid)
