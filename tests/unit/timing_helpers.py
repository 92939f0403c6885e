"""Small packs and a device with a clock of its own, for the tests of the timing stage."""

import itertools
from contextlib import nullcontext

import numpy as np

from cpbalance.cli import main
from cpbalance.stage_schemas import PACKS
from cpbalance.tables import write_table
from cpbalance.timing.device import State

# (step, pack, segment lengths) of a cluster of two devices with 64 tokens each.
CP1 = [(0, 0, [40, 24]), (0, 1, [64]), (1, 0, [1, 63]), (1, 1, [32, 32])]
CP2 = [(0, 0, [40, 88]), (1, 0, [1, 95, 32])]


def write_packs(path, cp_size, packs, **provenance):
    """A file of the pack stage, one row a segment."""
    rows = [(step, pack, length) for step, pack, segments in packs for length in segments]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    settings = {"stage": "pack", "world_size": 2, "tp_size": 1, "tokens_per_gpu": 64}
    write_table(
        path,
        PACKS,
        dict(zip(("step", "pack", "segment_tokens"), columns, strict=True)),
        {**settings, "cp_size": cp_size, "dp_size": 2 // cp_size, "source": {}, **provenance},
    )
    return path


def write_both(folder):
    """Pack files of CP 1 and 2."""
    return [
        write_packs(folder / "cp1.parquet", 1, CP1),
        write_packs(folder / "cp2.parquet", 2, CP2),
    ]


def time_arguments(packs, output, **changes):
    """Command line of a small timing run; a None drops the option, True keeps it bare."""
    options = {
        "kernel": "torch_cpu",
        "packs": packs,
        "steps": 2,
        "q-heads": 4,
        "kv-heads": 2,
        "head-dim": 16,
        "causal": True,
        "dtype": "float32",
        "passes": 2,
        "budget": 20,
        "seed": 3,
        "output": output,
    }
    options.update({key.replace("_", "-"): value for key, value in changes.items()})
    words = ["time"]
    for key, value in options.items():
        if value is None or value is False:
            continue
        words.append(f"--{key}")
        values = value if isinstance(value, list) else [value]
        words.extend(str(item) for item in values if item is not True)
    return words


def run_time(packs, output, **changes):
    """Exit status of a small timing run."""
    return main(time_arguments(packs, output, **changes))


class StepDevice:
    """A device on which every call takes what ``seconds`` says, and time passes only there."""

    kind, name, identity = "cpu", "step device", "a step device"
    clock = budget_clock = "steps"

    def __init__(self, seconds, throttle=lambda: ()):
        self._seconds, self._throttle = seconds, throttle
        self._now, self.measured, self.flushed = 0.0, [], 0

    def measure(self, call):
        target = call()
        elapsed = self._seconds(target)
        self._now += elapsed
        self.measured.append(target)
        return elapsed

    def flush_cache(self):
        self.flushed += 1

    def spent(self):
        return self._now

    def state(self):
        return State()

    def throttle_reasons(self):
        return self._throttle()

    def quiet(self):
        return nullcontext()


class MemoryJournal:
    """A journal that outlives a runner, as a file outlives a process."""

    def __init__(self):
        self.samples, self._earlier = [], []

    def replay(self):
        self._earlier = list(self.samples)
        return self._earlier

    def append(self, sample):
        self.samples.append(sample)


def noisy(scale=0.0, seed=0):
    """Seconds of a target: its CP degree, with relative noise of ``scale``."""
    generator = np.random.default_rng(seed)
    return lambda target: target.cp_size * (1 + scale * generator.standard_normal())


def counter():
    """Numbers from 1, one a call."""
    numbers = itertools.count(1)
    return lambda: next(numbers)
