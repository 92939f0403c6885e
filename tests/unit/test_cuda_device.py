"""The CUDA device's parts, held against a driver and a torch that answer from tables."""

import ctypes
from types import SimpleNamespace

import pytest

from cpbalance.errors import InputError
from cpbalance.timing import cuda
from cpbalance.timing.cuda import CudaDevice, open_cuda
from cpbalance.timing.nvml import Nvml, throttle_names


class Driver:
    """libnvidia-ml with fixed answers; a call that is not listed is not there."""

    def __init__(self, found=0, **answers):
        self._answers, self._found = answers, found
        for name in answers:
            setattr(self, name, self._answer(name))

    def nvmlInit_v2(self):
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid, handle):
        return self._found

    def _answer(self, name):
        def call(*arguments):
            value = self._answers[name]
            if value is None:
                return 3  # not supported
            arguments[-1]._obj.value = value
            return 0

        return call


ANSWERS = {
    "nvmlDeviceGetPowerUsage": 412_500,
    "nvmlDeviceGetClockInfo": 1755,
    "nvmlDeviceGetTemperature": 61,
    "nvmlDeviceGetCurrentClocksEventReasons": 0x4 | 0x20,
}
REASONS = "nvmlDeviceGetCurrentClocksEventReasons"


def test_state_is_read_from_the_driver():
    nvml = Nvml(Driver(**ANSWERS), "GPU-1")
    state = nvml.state()
    assert (state.clock_mhz, state.power_w, state.temperature_c) == (1755, 412.5, 61)
    assert state.other_processes is None
    assert throttle_names(nvml.throttle_mask()) == ("power cap", "software thermal slowdown")


@pytest.mark.parametrize("mask", [0x0, 0x1, 0x2, 0x100, 0x103])
def test_an_idle_gpu_and_set_clocks_are_no_throttling(mask):
    assert throttle_names(mask) == ()


def test_answers_that_the_driver_refuses_are_unknown():
    nvml = Nvml(Driver(**dict.fromkeys(ANSWERS)), "GPU-1")
    assert nvml.state() == type(nvml.state())()
    assert nvml.throttle_mask() is None
    unknown = Nvml(Driver(found=6, **ANSWERS), "GPU-2")
    assert unknown.state().power_w is None
    assert unknown.throttle_mask() is None


def test_an_older_driver_is_asked_by_the_older_name():
    driver = Driver(nvmlDeviceGetCurrentClocksThrottleReasons=0x40)
    names = throttle_names(Nvml(driver, "GPU-1").throttle_mask())
    assert names == ("hardware thermal slowdown",)


@pytest.mark.parametrize(("pids", "others"), [([], None), ([7], 0), ([7, 9], 1), ([31], 0)])
def test_other_processes_are_counted(pids, others):
    driver = Driver()

    def processes(handle, count, found):
        for i, pid in enumerate(pids):
            found[i].pid = pid
        count._obj.value = len(pids)
        return 0

    driver.nvmlDeviceGetComputeRunningProcesses_v3 = processes
    assert Nvml(driver, "GPU-1").other_processes() == others


def test_the_drivers_version_is_text():
    driver = Driver()

    def version(text, length):
        ctypes.memmove(text, b"570.86.15\0", 10)
        return 0

    driver.nvmlSystemGetDriverVersion = version
    assert Nvml(driver, "GPU-1").driver() == "570.86.15"


class Torch:
    """The little of torch that the device uses; notes what happens in which order."""

    int8 = "int8"

    def __init__(self):
        self.notes = notes = []
        properties = SimpleNamespace(
            name="NVIDIA H100 80GB HBM3", uuid="abc", major=9, minor=0, L2_cache_size=50 * 2**20,
            multi_processor_count=132, total_memory=80 * 2**30,
        )  # fmt: skip

        class Event:
            made = 0

            def __init__(self, enable_timing):
                assert enable_timing
                self.name = ("start", "end")[Event.made]
                Event.made += 1

            def record(self):
                notes.append(self.name)

            def synchronize(self):
                notes.append(f"wait for {self.name}")

            def elapsed_time(self, other):
                assert other.name == "end"
                return 0.75  # milliseconds

        class Buffer:
            def zero_(self):
                notes.append("flush")

        def empty(size, dtype, device):
            notes.append(f"allocate {size}")
            return Buffer()

        self.empty, self.version = empty, SimpleNamespace(cuda="13.0")
        self.cuda = SimpleNamespace(
            is_available=lambda: True,
            current_device=lambda: 0,
            get_device_properties=lambda index: properties,
            Event=Event,
            synchronize=lambda: notes.append("synchronize"),
            mem_get_info=lambda: (70 * 2**30, 80 * 2**30),
            _sleep=lambda cycles: notes.append("hold"),
        )


def test_a_call_is_queued_between_two_events_while_the_device_is_held():
    torch = Torch()
    device = CudaDevice(torch)
    device.flush_cache()
    seconds = device.measure(lambda: torch.notes.append("call"))
    assert seconds == pytest.approx(0.75e-3)
    assert torch.notes == [
        f"allocate {100 * 2**20}", "flush", "hold", "start", "call", "end", "wait for end",
    ]  # fmt: skip


def test_flushing_is_twice_the_l2_allocated_once_and_left_out_of_free_memory():
    torch = Torch()
    device = CudaDevice(torch)
    device.flush_cache()
    device.flush_cache()
    assert torch.notes == [f"allocate {100 * 2**20}", "flush", "flush"]
    assert device.free_memory() == 70 * 2**30 - 100 * 2**20


@pytest.mark.parametrize(
    ("driver", "reasons"),
    [
        (None, None),
        (Driver(), None),
        (Driver(**{REASONS: 0x1}), ()),
        (Driver(**{REASONS: 0x4}), ("power cap",)),
    ],
)
def test_throttling_is_unknown_where_the_driver_does_not_tell(monkeypatch, driver, reasons):
    monkeypatch.setattr(cuda, "open_nvml", lambda uuid: driver and Nvml(driver, uuid))
    assert CudaDevice(Torch()).throttle_reasons() == reasons


def test_the_environment_names_the_gpu(monkeypatch):
    device = CudaDevice(Torch())
    found = device.environment()
    assert found["device"] == "NVIDIA H100 80GB HBM3" and found["uuid"] == "GPU-abc"
    assert found["l2_bytes"] == 50 * 2**20 and found["cuda"] == "13.0"
    assert {"driver", "host", "torch", "python"} <= set(found)


def test_no_gpu_is_one_line(monkeypatch):
    torch = pytest.importorskip("torch", reason="asks torch for a GPU")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="no CUDA device that torch can use; run on a GPU") as e:
        open_cuda()
    assert "\n" not in str(e.value)


def test_holding_is_longer_than_a_launch():
    # At the highest clock of a Hopper GPU, 1.98 GHz.
    assert cuda.HOLD_CYCLES / 1.98e9 > 200e-6
