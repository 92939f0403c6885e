"""Attention kernels by name: which there are, which can run here, and why not."""

from cpbalance.attention import Attention
from cpbalance.errors import InputError
from cpbalance.kernels.base import Kernel, Probe
from cpbalance.kernels.torch_cpu import TorchCpu
from cpbalance.kernels.varlen import (
    FlashAttention2,
    FlashAttention3,
    FlashAttention4,
    TorchVarlen,
)

# In the order in which ``auto`` prefers them.
KERNELS: dict[str, type[Kernel]] = {
    adapter.name: adapter
    for adapter in (FlashAttention3, FlashAttention4, FlashAttention2, TorchVarlen, TorchCpu)
}


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


def find_kernel(name: str, attention: Attention, directions: tuple[str, ...]) -> Kernel:
    """The kernel ``name``, loaded and able to run this here; ``auto`` is the first that can.

    Raises :class:`~cpbalance.errors.InputError` for an unknown name, and for a kernel that cannot
    run on this machine or does not support the attention or a direction.
    """
    if name != "auto" and name not in KERNELS:
        raise InputError(f"kernel is {name!r}: use one of auto, {', '.join(KERNELS)}")
    probes = probe_devices()
    reasons = []
    for candidate in KERNELS if name == "auto" else (name,):
        kernel = KERNELS[candidate]()
        try:
            reason = kernel.unavailable(probes)
            if reason is not None:
                raise InputError(f"kernel is {candidate}: {reason}")
            kernel.check(attention, directions, probes[kernel.device])
        except InputError as error:
            if name != "auto":
                raise
            reasons.append(str(error))
        else:
            return kernel
    raise InputError(f"kernel is auto and none can run this here: {'; '.join(reasons)}")
