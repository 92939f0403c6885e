"""``cpbalance time``: time an attention kernel on packs, on this machine.

Needs torch, numpy and pyarrow, and the kernel's own package.
"""

import argparse
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cpbalance.attention import Attention
from cpbalance.cli.attention_arguments import add_attention_arguments
from cpbalance.cli.job_checks import check_writable, expect_device
from cpbalance.cli.time_journal import FileJournal
from cpbalance.cli.time_packs import Packs, read_packs, step_range
from cpbalance.kernels import find_kernel
from cpbalance.kernels.base import BACKWARD, DTYPES, FORWARD, Kernel
from cpbalance.stage_schemas import TIMINGS
from cpbalance.tables import table_writer
from cpbalance.timing.device import Device, likeness, open_device
from cpbalance.timing.plan import Method, Target
from cpbalance.timing.record import run_provenance, step_columns
from cpbalance.timing.runner import Runner
from cpbalance.timing.workload import (
    HeadCount,
    Workload,
    check_batch,
    check_memory,
    check_output,
    check_segments,
    memory_is_input,
    middle_target,
    timed_heads,
)
from cpbalance.tracking import code_digest

logger = logging.getLogger("cpbalance")

HELP = "time an attention kernel on packs, on this machine"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    parser.add_argument("--kernel", required=True, help="name of a kernel, or auto")
    parser.add_argument(
        "--packs", type=Path, nargs="+", required=True, help="files of the pack stage, one a CP"
    )
    steps = parser.add_mutually_exclusive_group(required=True)
    steps.add_argument("--steps", type=int, help="time the packs of so many first steps")
    steps.add_argument("--step-range", metavar="FIRST:STOP", help="time these steps, STOP left out")
    parser.add_argument("--shard", metavar="K-of-N", help="time the K-th of N shares of the steps")
    add_attention_arguments(parser)
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16")
    parser.add_argument(
        "--timed-heads",
        type=int,
        metavar="N",
        help="time at most N query heads of those that a rank has (default: all)",
    )
    parser.add_argument("--direction", choices=(FORWARD, BACKWARD, "both"), default=FORWARD)
    parser.add_argument(
        "--width",
        type=float,
        default=0.01,
        help="a pack is settled when the 95%% interval of its median is narrower than this share",
    )
    parser.add_argument("--budget", type=float, default=600.0, help="seconds to spend at most")
    parser.add_argument("--passes", type=int, default=100, help="passes to make at most")
    parser.add_argument("--sentinel-every", type=int, default=32, metavar="CALLS")
    parser.add_argument("--warm-cache", action="store_true", help="do not flush the L2 cache")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--expect-device", metavar="NAME", help="name of the device expected here")
    parser.add_argument(
        "--strict-device", action="store_true", help="refuse a device other than the expected one"
    )
    parser.add_argument("--output", type=Path, required=True)


def run(args: argparse.Namespace) -> None:
    """Write a row for every call measured."""
    check_writable(args.output.parent)
    method = Method(
        seed=args.seed,
        width=args.width,
        budget_s=args.budget,
        max_passes=args.passes,
        sentinel_every=args.sentinel_every,
        warm_cache=args.warm_cache,
    )
    attention = Attention(args.q_heads, args.kv_heads, args.head_dim, args.causal, args.dtype)
    directions = (FORWARD, BACKWARD) if args.direction == "both" else (args.direction,)
    packs = read_packs(args.packs, step_range(args.steps, args.step_range, args.shard))
    heads = {cp: timed_heads(attention, cp, args.timed_heads) for cp in packs.cp_sizes}
    for (cp, step, pack), segments in packs.segments.items():
        check_segments(cp, step, pack, segments)
    kernel = find_kernel(args.kernel, attention, directions)
    device = open_device(kernel.device)
    say(f"kernel {kernel.name} of {kernel.module} on {device.name}")
    expect_device(device, args.expect_device, args.strict_device)
    sizes = (packs.largest(), heads, attention, directions)
    check_memory(device, *sizes)
    if device.kind == "cuda" and device.throttle_reasons() is None:
        logger.warning("cpbalance time: throttling unknown: the driver does not tell")
    settings = {
        "stage": "time",
        "kernel": kernel.provenance(),
        "attention": {"name": args.attention_name, **vars_of(attention)},
        "timed_heads": args.timed_heads,
        "heads": {f"cp{cp}": vars_of(count) for cp, count in heads.items()},
        "directions": list(directions),
        "clock": device.clock,
        "budget_clock": device.budget_clock,
        "method": method.provenance(),
        "source": packs.source,
    }
    with kernel.session(), memory_is_input(device, *sizes):
        measure(args.output, kernel, device, method, attention, heads, directions, packs, settings)


def measure(
    output: Path,
    kernel: Kernel,
    device: Device,
    method: Method,
    attention: Attention,
    heads: Mapping[int, HeadCount],
    directions: tuple[str, ...],
    packs: Packs,
    settings: dict[str, Any],
) -> None:
    """Check the kernel's output, time all packs, write the file."""
    environment = device.environment()
    workload = Workload(kernel, attention, heads, packs.largest(), method.seed, directions)
    smallest = min(heads)
    error = check_output(
        kernel, check_batch(workload, packs.of(smallest), smallest), attention.dtype
    )
    say(f"output agrees with float64 to {error:.1e}")
    targets = [Target(cp, step, pack, d) for cp, step, pack in packs.segments for d in directions]

    def prepare(target: Target) -> Callable[[], Any]:
        return workload.call(target, packs.segments[target.cp_size, target.step, target.pack])

    plan = {
        **settings,
        "steps": packs.steps,
        "packs": packs.digest(),
        "environment": likeness(environment),
        "code": code_digest("time"),
    }
    journal = FileJournal(output.with_name(f"{output.name}.partial.jsonl"), plan, say)
    if elsewhere := sorted({s.device for s in journal.replay()} - {device.identity}):
        say(f"goes on at {device.identity}; calls were made at {', '.join(elsewhere)} before")
    try:
        runner = Runner(targets, prepare, device, method, journal, Progress(say))
        outcome = runner.run(middle_target(targets, packs.segments))
    except BaseException:
        journal.close()
        raise
    run = run_provenance(outcome, packs.steps, packs.digest(), environment, error, len(targets))
    with table_writer(output, TIMINGS, {**settings, "runs": [run]}) as writer:
        for step in range(*packs.steps):
            writer.write(step_columns(step, outcome.samples, packs.segments, heads))
    journal.discard()
    if len(run["devices"]) > 1:
        times = (
            f"{d['sentinel_s'] or float('nan'):.3g} s at {d['device']}" for d in run["devices"]
        )
        say(f"like devices took part; the sentinel took {', '.join(times)}")
    say(
        f"{run['calls']} calls in {outcome.spent:.1f} s ({device.budget_clock}); {outcome.reason}; "
        f"{outcome.settled} of {len(targets)} packs within {method.width:.1%}; "
        + (
            "throttling unknown"
            if run["throttled"] is None
            else f"{run['throttled']} samples left out for throttling"
        )
        + ("" if run["drift"] is None else f"; the sentinel drifted within {run['drift']:.1%}")
    )


def vars_of(value: Any) -> dict[str, Any]:
    """Fields of a dataclass, one level deep."""
    return dict(vars(value))


def say(message: str) -> None:
    """One line to the log."""
    logger.info("cpbalance time: %s", message)


class Progress:
    """Passes on a message every few seconds."""

    def __init__(self, log: Callable[[str], None], every_s: float = 5.0) -> None:
        self._log, self._every, self._last = log, every_s, float("-inf")

    def __call__(self, message: str) -> None:
        """Log ``message`` if the last one is long enough ago."""
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self._log(message)
