"""Which kernels can run where, and what they say when they cannot."""

import importlib.util
import sys
import types

import pytest

from cpbalance.attention import Attention
from cpbalance.cli import main
from cpbalance.errors import InputError
from cpbalance.kernels import KERNELS, find_kernel
from cpbalance.kernels.base import BACKWARD, FORWARD, Probe
from cpbalance.names import KERNEL_NAMES
from cpbalance.tiles import KNOWN_TILES

torch = pytest.importorskip("torch", reason="the kernels are torch's")

LAYER = Attention(q_heads=4, kv_heads=2, head_dim=128, causal=True)
HOPPER = Probe("cuda", "a Hopper", (9, 0))


def test_names_are_the_same_everywhere():
    assert tuple(KERNELS) == KERNEL_NAMES
    assert set(KNOWN_TILES) <= set(KERNELS)


@pytest.mark.parametrize("name", [n for n in KERNELS if n != "torch_cpu"])
def test_a_gpu_kernel_without_a_gpu_says_what_it_needs(name):
    reason = KERNELS[name]().unavailable({"cpu": Probe("cpu", "CPU")})
    assert "needs a CUDA device and this machine has none" in reason and "\n" not in reason


@pytest.mark.parametrize(
    ("name", "capability", "says"),
    [("fa3", (8, 0), "8.0, it runs on 9.0"), ("fa3", (10, 0), "10.0"), ("fa2", (7, 5), "7.5")],
)
def test_a_gpu_that_a_kernel_does_not_run_on_is_named(name, capability, says):
    reason = KERNELS[name]().unavailable({"cuda": Probe("cuda", "a GPU", capability)})
    assert "a GPU has compute capability" in reason and says in reason


@pytest.mark.parametrize("name", ["fa3", "fa2", "fa4"])
def test_a_package_that_is_not_installed_is_named_with_what_to_install(name):
    tops = {module.partition(".")[0] for module in KERNELS[name].modules}
    if any(importlib.util.find_spec(top) for top in tops):
        pytest.skip(f"a package of {name} is installed here")
    reason = KERNELS[name]().unavailable({"cuda": HOPPER})
    assert f"kernel {name} cannot be loaded" in reason and "install " in reason
    assert "\n" not in reason


def test_a_package_that_breaks_on_import_gives_its_reason(tmp_path, monkeypatch):
    (tmp_path / "fa3_fwd_interface.py").write_text(
        "raise ImportError('undefined symbol: aoti_torch\\nand more')"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fa3_fwd_interface", raising=False)
    reason = KERNELS["fa3"]().unavailable({"cuda": HOPPER})
    assert "fa3_fwd_interface: undefined symbol: aoti_torch" in reason
    assert "torch 2.11 or newer" in reason and "\n" not in reason


def test_the_forward_only_wheel_refuses_backward_and_float16(monkeypatch):
    module = types.ModuleType("fa3_fwd_interface")
    module.flash_attn_varlen_func = lambda: None
    monkeypatch.setitem(sys.modules, "fa3_fwd_interface", module)
    kernel = KERNELS["fa3"]()
    assert kernel.unavailable({"cuda": HOPPER}) is None
    kernel.check(LAYER, (FORWARD,), HOPPER)
    with pytest.raises(InputError, match="has the forward pass alone"):
        kernel.check(LAYER, (FORWARD, BACKWARD), HOPPER)
    half = Attention(4, 2, 128, True, "float16")
    with pytest.raises(InputError, match="the prebuilt fa3-fwd runs bfloat16 alone"):
        kernel.check(half, (FORWARD,), HOPPER)


@pytest.mark.parametrize(
    ("name", "head_dim", "dtype", "says"),
    [
        ("fa3", 32, "bfloat16", "head_dim is 32: kernel fa3 runs 64 to 256"),
        ("fa2", 129, "bfloat16", "head_dim is 129: kernel fa2 runs 1 to 256 in multiples of 8"),
        ("fa4", 512, "bfloat16", "head_dim is 512"),
        ("torch_varlen", 128, "float32", "dtype is float32: kernel torch_varlen runs bfloat16"),
    ],
)
def test_unsupported_settings_are_refused(name, head_dim, dtype, says):
    with pytest.raises(InputError, match=says):
        KERNELS[name]().check(Attention(4, 2, head_dim, True, dtype), (FORWARD,), HOPPER)


def test_fa4_on_blackwell_lacks_some_head_dimensions():
    blackwell = Probe("cuda", "a Blackwell", (10, 0))
    layer = Attention(4, 2, 192, True)
    KERNELS["fa4"]().check(layer, (FORWARD,), HOPPER)
    with pytest.raises(InputError, match="on a Blackwell kernel fa4 runs 8 to 128, and 256"):
        KERNELS["fa4"]().check(layer, (FORWARD,), blackwell)


def test_auto_takes_the_first_that_can_and_else_says_why_not(monkeypatch):
    monkeypatch.setattr("cpbalance.kernels.probe_devices", lambda: {"cpu": Probe("cpu", "CPU")})
    layer = Attention(4, 2, 128, True, "float32")
    assert find_kernel("auto", layer, (FORWARD,)).name == "torch_cpu"
    with pytest.raises(InputError, match=r"kernel is auto and none can run this here: .*float16"):
        find_kernel("auto", Attention(4, 2, 128, True, "float16"), (FORWARD,))


def test_list_of_kernels_says_which_and_why_not(capsys):
    assert main(["kernels"]) == 0
    out = capsys.readouterr().out
    for name in KERNELS:
        assert f"\n{name} " in f"\n{out}"
    assert "torch_cpu     available" in out
    if not torch.cuda.is_available():
        assert out.count("not available") == 4 and "auto          is torch_cpu" in out
