"""Attention kernels by name, one adapter a module."""

from cpbalance.errors import InputError
from cpbalance.kernels.base import Kernel, Probe
from cpbalance.kernels.torch_cpu import TorchCpu

# In the order in which ``auto`` prefers them.
KERNELS: dict[str, type[Kernel]] = {adapter.name: adapter for adapter in (TorchCpu,)}


def probe_devices() -> dict[str, Probe]:
    """Devices that torch can use here, by kind.

    Raises :class:`~cpbalance.errors.InputError` where torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError("torch cannot be imported: install torch to time kernels") from error
    probes = {"cpu": Probe("cpu", "CPU")}
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        probes["cuda"] = Probe("cuda", properties.name, (properties.major, properties.minor))
    return probes


def find_kernel(name: str) -> Kernel:
    """The kernel ``name``, loaded and able to run here; ``auto`` is the first that can.

    Raises :class:`~cpbalance.errors.InputError` for an unknown name or a kernel that cannot run
    on this machine.
    """
    if name != "auto" and name not in KERNELS:
        raise InputError(f"kernel is {name!r}: use one of auto, {', '.join(KERNELS)}")
    probes = probe_devices()
    for candidate in KERNELS if name == "auto" else (name,):
        kernel = KERNELS[candidate]()
        reason = kernel.unavailable(probes)
        if reason is None:
            return kernel
        if name != "auto":
            raise InputError(f"kernel is {name}: {reason}")
    raise InputError("kernel is auto: none of the kernels can run here; see cpbalance kernels")
