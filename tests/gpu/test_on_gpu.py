"""What only a GPU can show: values of the real kernels, the real driver's answers."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the kernels need torch")

from cpbalance.attention import Attention  # noqa: E402
from cpbalance.errors import InputError  # noqa: E402
from cpbalance.kernels import KERNELS, probe_devices  # noqa: E402
from cpbalance.kernels.base import FORWARD  # noqa: E402
from cpbalance.timing.device import open_device  # noqa: E402
from cpbalance.timing.nvml import open_nvml  # noqa: E402
from cpbalance.timing.workload import (  # noqa: E402
    TOLERANCE,
    HeadCount,
    Workload,
    reference_attention,
    relative_error,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
LENGTHS = np.array([1, 700, 33, 1500, 128])
CUDA_KERNELS = [name for name, adapter in KERNELS.items() if adapter.device == "cuda"]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kv_heads", [1, 2, 8])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize("name", CUDA_KERNELS)
def test_values_agree_with_float64(name, head_dim, kv_heads, causal):
    kernel, probes = KERNELS[name](), probe_devices()
    reason = kernel.unavailable(probes)
    if reason is not None:
        pytest.skip(reason)
    attention = Attention(8, kv_heads, head_dim, causal)
    try:
        kernel.check(attention, (FORWARD,), probes["cuda"])
    except InputError as error:
        pytest.skip(str(error))
    heads = {1: HeadCount(8, kv_heads, 8, kv_heads)}
    workload = Workload(kernel, attention, heads, {1: int(LENGTHS.sum())}, seed=0)
    batch = workload.batch(1, LENGTHS)
    assert relative_error(kernel, batch) < TOLERANCE["bfloat16"]
    # The tolerance is of rounding: another mask is far outside it.
    output = kernel.output(kernel.forward(batch)()).cpu().double()
    other = reference_attention(replace(batch, causal=not causal))
    assert (output - other).norm() / other.norm() > 10 * TOLERANCE["bfloat16"]


def test_the_driver_tells_the_state_of_the_gpu():
    device = open_device("cuda")
    nvml = open_nvml(device.uuid)
    if nvml is None or not nvml.known:
        pytest.skip("the driver's library is not here, or hides this GPU")
    state = device.state()
    assert state.clock_mhz is None or 100 < state.clock_mhz < 5000
    assert state.power_w is None or 10 < state.power_w < 2000
    assert device.environment()["driver"]


def test_the_cache_is_flushed_by_more_than_it_holds():
    device = open_device("cuda")
    properties = torch.cuda.get_device_properties(0)
    assert device.flush_bytes >= 2 * properties.L2_cache_size > 0
    device.flush_cache()
    assert device.measure(lambda: None) >= 0
