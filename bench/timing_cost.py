"""Seconds that timing a pack costs: until its median is known, beside a fixed 125 ms a pack.

The fixed policy is that of triton's ``do_bench``: 25 ms of warm-up calls, then calls for 100 ms,
each after a cache flush; on a GPU with triton, ``do_bench`` itself. Same packs, same process, one
kernel: the best one that this machine has. ``width`` is the 95% interval of a pack's median over
that median, as the median over the packs; the times are of the device's budget clock.
"""

import logging
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import torch

from cpbalance.attention import Attention
from cpbalance.kernels import find_kernel
from cpbalance.kernels.base import FORWARD
from cpbalance.timing.device import Device, open_device
from cpbalance.timing.plan import PACK, Method, Target
from cpbalance.timing.runner import Runner
from cpbalance.timing.statistics import relative_width
from cpbalance.timing.workload import Workload, middle_target, timed_heads

PACKS = 16
WARMUP_S, REPEAT_S = 0.025, 0.1
Prepare = Callable[[Target], Callable[[], Any]]


class _NoJournal:
    """Keeps nothing: a benchmark is not resumed."""

    def replay(self) -> list[Any]:
        return []

    def append(self, sample: Any) -> None:
        pass


def _packs(cuda: bool) -> dict[tuple[int, int, int], np.ndarray]:
    """Exponential lengths, an eighth of the pack in the mean, as in the article."""
    tokens = 8192 if cuda else 2048
    generator = np.random.default_rng(0)
    packs = {}
    for pack in range(PACKS):
        ends = np.cumsum(np.ceil(generator.exponential(tokens / 8, 100)).astype(np.int64))
        packs[1, 0, pack] = np.diff([0, *ends[ends < tokens], tokens])
    return packs


def _fixed(device: Device, prepare: Prepare, targets: list[Target]) -> dict[str, Any]:
    start, samples = device.spent(), []
    with device.quiet():
        for target in targets:
            samples.append(_fixed_one(device, prepare(target)))
    return _row("fixed 125 ms", device.spent() - start, samples)


def _fixed_one(device: Device, call: Callable[[], Any]) -> list[float]:
    if device.kind == "cuda":
        from triton.testing import do_bench

        return [ms * 1e-3 for ms in do_bench(call, return_mode="all")]
    call()
    estimate = median(device.measure(call) for _ in range(5))
    for _ in range(max(1, int(WARMUP_S / estimate))):
        call()
    samples = []
    for _ in range(max(1, int(REPEAT_S / estimate))):
        device.flush_cache()
        samples.append(device.measure(call))
    return samples


def _until_known(
    device: Device, prepare: Prepare, targets: list[Target], sentinel: Target, width: float
) -> dict[str, Any]:
    method = Method(seed=0, width=width, budget_s=30.0)
    runner = Runner(targets, prepare, device, method, _NoJournal(), logging.debug)
    outcome = runner.run(sentinel)
    samples = [
        [s.seconds for s in outcome.samples if s.call.kind == PACK and s.call.target == target]
        for target in targets
    ]
    settled = f"{outcome.settled}/{len(targets)} within {width:.0%}"
    return _row(f"to {width:.0%}", outcome.spent, samples) | {"settled": settled}


def _row(policy: str, spent: float, samples: list[list[float]]) -> dict[str, Any]:
    return {
        "policy": policy,
        "seconds_a_pack": spent / len(samples),
        "calls_a_pack": float(np.mean([len(s) for s in samples])),
        "median_call_ms": 1e3 * median(median(s) for s in samples),
        "width": median(relative_width(s) for s in samples),
        "settled": "",
    }


def run() -> pd.DataFrame:
    """One row a policy."""
    cuda = torch.cuda.is_available()
    attention = Attention(64 if cuda else 1, 64 if cuda else 1, 128 if cuda else 64, False)
    if not cuda:
        attention = Attention(1, 1, 64, False, "float32")
    kernel = find_kernel("auto", attention, (FORWARD,))
    device = open_device(kernel.device)
    packs = _packs(cuda)
    heads = {1: timed_heads(attention, 1, None)}
    workload = Workload(kernel, attention, heads, {1: max(map(sum, packs.values()))}, seed=0)
    targets = [Target(*key, FORWARD) for key in packs]

    def prepare(target: Target) -> Callable[[], Any]:
        return workload.call(target, packs[target.cp_size, target.step, target.pack])

    sentinel = middle_target(targets, packs)
    with kernel.session():
        rows = [
            _until_known(device, prepare, targets, sentinel, 0.05),
            _until_known(device, prepare, targets, sentinel, 0.01),
            _fixed(device, prepare, targets),
        ]
    return pd.DataFrame([{"kernel": kernel.name, "device": device.name, **row} for row in rows])
