"""What a timing run leaves behind: a row a call, and how it was led."""

import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from numpy.typing import NDArray

from cpbalance.timing.plan import SENTINEL
from cpbalance.timing.runner import Outcome, Sample
from cpbalance.timing.workload import HeadCount


def step_columns(
    step: int,
    samples: Sequence[Sample],
    segments: Mapping[tuple[int, int, int], NDArray],
    heads: Mapping[int, HeadCount],
) -> dict[str, list[Any]]:
    """Columns of the timings file for the samples of one step, in the order they were taken.

    ``order`` counts all samples of the run, so the rows of all steps can be put back in order.
    """
    rows = [(i, s) for i, s in enumerate(samples) if s.call.target.step == step]
    targets = [s.call.target for _, s in rows]
    packs = [segments[t.cp_size, t.step, t.pack] for t in targets]
    counts = [heads[t.cp_size] for t in targets]
    return {
        "step": [t.step for t in targets],
        "cp_size": [t.cp_size for t in targets],
        "pack": [t.pack for t in targets],
        "direction": [t.direction for t in targets],
        "kind": [s.call.kind for _, s in rows],
        "pass": [s.call.sweep for _, s in rows],
        "order": [i for i, _ in rows],
        "seconds": [s.seconds for _, s in rows],
        "throttled": [s.throttled for _, s in rows],
        "num_tokens": [int(p.sum()) for p in packs],
        "num_segments": [len(p) for p in packs],
        "q_heads": [c.q_heads for c in counts],
        "kv_heads": [c.kv_heads for c in counts],
        "rank_q_heads": [c.rank_q_heads for c in counts],
        "rank_kv_heads": [c.rank_kv_heads for c in counts],
        "clock_mhz": [s.state.clock_mhz for _, s in rows],
        "power_w": [s.state.power_w for _, s in rows],
        "temperature_c": [s.state.temperature_c for _, s in rows],
    }


def run_provenance(
    outcome: Outcome,
    steps: tuple[int, int],
    packs_digest: str,
    environment: Mapping[str, Any],
    output_error: float,
    targets: int,
) -> dict[str, Any]:
    """How one run went: where, on which packs, at what expense, and how it ended."""
    sentinel = sentinel_seconds(outcome.samples)
    throttled = [s.throttled for s in outcome.samples]
    processes = [s.state.other_processes for s in outcome.samples]
    return {
        "steps": list(steps),
        "packs_digest": packs_digest,
        "environment": dict(environment),
        "devices": device_shares(outcome.samples),
        "code": git_state(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "output_error": output_error,
        "calls": len(outcome.samples),
        "targets": targets,
        "settled": outcome.settled,
        "passes": outcome.sweeps,
        "budget_used_s": outcome.spent,
        "ended": outcome.reason,
        # Range of the sentinel's times over their median: how far the device drifted.
        "drift": (max(sentinel) - min(sentinel)) / median(sentinel) if sentinel else None,
        # Null where the device never told.
        "throttled": sum(told) if (told := [t for t in throttled if t is not None]) else None,
        "throttling_unknown": throttled.count(None),
        "throttle_reasons": dict(Counter(r for s in outcome.samples for r in s.throttle or ())),
        "other_processes": max((p for p in processes if p is not None), default=None),
    }


def sentinel_seconds(samples: Iterable[Sample]) -> list[float]:
    """Times of the sentinel, but for those under throttling."""
    return [s.seconds for s in samples if s.call.kind == SENTINEL and not s.throttled]


def device_shares(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Who made which samples: a run that was interrupted may have gone on at a like device.

    ``orders`` are the first and the last ``order`` of each stretch of rows; ``sentinel_s``, the
    median of the sentinel there, shows how far the devices differ.
    """
    found: dict[str, dict[str, Any]] = {}
    for device, group in groupby(range(len(samples)), key=lambda i: samples[i].device):
        rows = list(group)
        share = found.setdefault(device, {"device": device, "calls": 0, "orders": []})
        share["calls"] += len(rows)
        share["orders"].append([rows[0], rows[-1]])
    for device, share in found.items():
        sentinel = sentinel_seconds(s for s in samples if s.device == device)
        share["sentinel_s"] = median(sentinel) if sentinel else None
    return list(found.values())


def git_state() -> dict[str, Any] | None:
    """Commit of this code and whether files differ from it, None outside a git checkout."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
        return done.stdout.strip()

    try:
        return {
            "commit": git("rev-parse", "HEAD"),
            "changed": bool(git("status", "--porcelain", "--", ".")),
        }
    except (OSError, subprocess.SubprocessError):
        return None
