"""Leads a timing run: warm-up, passes over the packs, until they are settled or the budget ends.

A run is a deterministic walk over calls, driven by the samples it has seen. A journal answers for
calls that an earlier, interrupted run has made already, so a run that is killed and started again
walks the same way, measures only what is missing and so repeats at most the one call it was in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol

from cpbalance.timing.device import Device, State
from cpbalance.timing.plan import PACK, WARMUP, Call, Method, Target, sweep_calls
from cpbalance.timing.statistics import relative_width

# Warm-up ends when the medians of two successive windows agree, after the last window, or when it
# has taken this share of the budget.
WARMUP_WINDOW = 5
WARMUP_TOLERANCE = 0.02
WARMUP_MAX_WINDOWS = 20
WARMUP_SHARE = 0.1

# Slowest and fastest packs of a step that the rest of a budget goes to.
EXTREMES = 2

# How a run ends.
SETTLED = "every pack is settled"
BUDGET_USED = "the budget is used up"
PASSES_MADE = "all passes are made"


@dataclass(frozen=True)
class Sample:
    """One measured call. ``spent`` is the budget used once it was done, in seconds.

    ``device`` is the identity of the device it was made on.
    """

    call: Call
    seconds: float
    throttle: tuple[str, ...] | None
    spent: float
    state: State
    device: str

    @property
    def throttled(self) -> bool | None:
        """Whether the device held its clock down; such a sample counts in no median.

        None where the device does not tell.
        """
        return None if self.throttle is None else bool(self.throttle)


@dataclass
class Outcome:
    """Samples in the order in which they were taken, and how the run ended."""

    samples: list[Sample] = field(default_factory=list)
    reason: str = ""
    spent: float = 0.0
    sweeps: int = 0
    settled: int = 0


class Journal(Protocol):
    """Keeps samples as they come, and those of an interrupted run."""

    def replay(self) -> Sequence[Sample]:
        """Samples of an interrupted run of the same plan, in order."""

    def append(self, sample: Sample) -> None:
        """Keep a sample; it survives the process from here on."""


class Runner:
    """Times ``targets`` on ``device``; see :meth:`run`.

    ``prepare`` makes the call of a target ready, right before it is timed, so that no more than
    one pack's intermediate tensors are alive.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        prepare: Callable[[Target], Callable[[], Any]],
        device: Device,
        method: Method,
        journal: Journal,
        progress: Callable[[str], None],
    ) -> None:
        self._prepare, self._device, self._method = prepare, device, method
        self._journal, self._progress = journal, progress
        self._targets = sorted(targets)
        earlier = list(journal.replay())
        self._waiting = [s for s in earlier if s.call.kind != WARMUP]
        self._outcome = Outcome(samples=[s for s in earlier if s.call.kind == WARMUP])
        self._base = max((s.spent for s in earlier), default=0.0) - device.spent()
        self._seconds: dict[Target, list[float]] = {target: [] for target in self._targets}
        self._expected: dict[Target, float] = {}
        self._state, self._paid = State(), 0.0

    def run(self, sentinel: Target) -> Outcome:
        """Warm up, then pass over the targets until each is settled or the budget ends."""
        if self._waiting:
            self._progress(f"resuming after {len(self._waiting)} calls made earlier")
        with self._device.quiet():
            self._warm_up(sentinel)
            self._outcome.reason = self._sweep_all(sentinel)
        self._outcome.spent = self._spent()
        self._outcome.settled = len(self._targets) - len(self._active())
        return self._outcome

    def _spent(self) -> float:
        return self._base + self._device.spent()

    def _active(self) -> list[Target]:
        width = self._method.width
        return [t for t in self._targets if not relative_width(self._seconds[t]) < width]

    def _warm_up(self, sentinel: Target) -> None:
        """Call one pack of each kind once, then the sentinel until its time stands still."""
        firsts = {(t.cp_size, t.direction): t for t in reversed(self._targets)}
        for target in firsts.values():
            self._measure(Call(WARMUP, 0, target))
        last: float | None = None
        end = self._spent() + WARMUP_SHARE * self._method.budget_s
        for window in range(WARMUP_MAX_WINDOWS):
            call = Call(WARMUP, window + 1, sentinel)
            now = median(self._measure(call).seconds for _ in range(WARMUP_WINDOW))
            if last is not None and abs(now - last) <= WARMUP_TOLERANCE * last:
                break
            if self._spent() > end:
                break
            last = now

    def _sweep_all(self, sentinel: Target) -> str:
        for sweep in range(self._method.max_passes):
            active = self._active()
            if not active:
                return SETTLED
            chosen = active if sweep == 0 else self._within_budget(active)
            if not chosen:
                return BUDGET_USED
            for call in sweep_calls(chosen, sentinel, sweep, self._method):
                if sweep > 0 and not self._affordable(call):
                    return BUDGET_USED
                self._take(call)
                self._report(sweep, len(active))
            self._outcome.sweeps += len(chosen) == len(active)
        return PASSES_MADE if self._active() else SETTLED

    def _within_budget(self, active: list[Target]) -> list[Target]:
        """All of ``active`` if the rest of the budget allows, else those that matter most.

        First the slowest and fastest packs of each step, which set its imbalance: the slowest of
        many is likely one that was disturbed, and is found out by being called again. Then as many
        whose samples disagree most. It depends on samples alone, so a resumed run chooses the same.
        """
        left = self._method.budget_s - self._paid
        if sum(self._expected[target] for target in active) <= left:
            return active
        slowest_and_fastest = self._extremes()
        extremes = [target for target in active if target in slowest_and_fastest]
        others = sorted(set(active) - set(extremes), key=lambda t: (-self._spread(t), t))
        chosen = []
        for target in extremes + others[: len(extremes)]:
            left -= self._expected[target]
            if left < 0:
                break
            chosen.append(target)
        return sorted(chosen)

    def _extremes(self) -> set[Target]:
        """The two slowest and the two fastest packs of every step, CP degree and direction."""
        groups: dict[tuple[int, int, str], list[Target]] = {}
        for target in self._targets:
            groups.setdefault((target.cp_size, target.step, target.direction), []).append(target)
        found: set[Target] = set()
        for group in groups.values():
            known = [t for t in group if self._seconds[t]]
            ordered = sorted(known, key=lambda t: (median(self._seconds[t]), t))
            found.update(ordered[:EXTREMES] + ordered[-EXTREMES:])
        return found

    def _spread(self, target: Target) -> float:
        samples = self._seconds[target]
        return (max(samples) - min(samples)) / median(samples) if samples else float("inf")

    def _affordable(self, call: Call) -> bool:
        # A waiting sample was paid for already.
        if self._waiting:
            return True
        return self._spent() + self._expected[call.target] <= self._method.budget_s

    def _take(self, call: Call) -> None:
        if self._waiting and self._waiting[0].call == call:
            sample = self._waiting.pop(0)
            self._outcome.samples.append(sample)
        else:
            # An earlier run that was led otherwise has nothing more to say.
            self._waiting.clear()
            sample = self._measure(call)
        self._paid = sample.spent
        self._expected[call.target] = sample.seconds
        if call.kind == PACK and not sample.throttled:
            self._seconds[call.target].append(sample.seconds)

    def _measure(self, call: Call) -> Sample:
        # The full state takes a while to ask for, so only now and then; throttling every time.
        if call.kind != PACK:
            self._state = self._device.state()
        ready = self._prepare(call.target)
        if not self._method.warm_cache:
            self._device.flush_cache()
        seconds = self._device.measure(ready)
        throttle = self._device.throttle_reasons()
        device = self._device.identity
        sample = Sample(call, seconds, throttle, self._spent(), self._state, device)
        self._journal.append(sample)
        self._outcome.samples.append(sample)
        return sample

    def _report(self, sweep: int, active: int) -> None:
        left = max(0.0, self._method.budget_s - self._spent())
        self._progress(
            f"pass {sweep + 1}: {active} packs not settled, {len(self._outcome.samples)} calls "
            f"made, budget used {self._spent():.0f} s, at most {left:.0f} s left"
        )
