import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timing_helpers import MemoryJournal, StepDevice, noisy

from cpbalance.errors import InputError
from cpbalance.timing.plan import PACK, SENTINEL, WARMUP, Method, Target, sweep_calls
from cpbalance.timing.runner import Runner
from cpbalance.timing.statistics import interval_rank, median_interval, relative_width

TARGETS = [Target(cp, step, pack, "forward") for cp in (1, 2) for step in (0, 1) for pack in (0, 1)]
SENTINEL_TARGET = TARGETS[0]


def lead(device, journal=None, prepare=None, **method):
    journal = journal or MemoryJournal()
    method = Method(**{"seed": 1, "width": 0.05, "budget_s": 1e9, "max_passes": 10, **method})
    prepare = prepare or (lambda target: lambda: target)
    runner = Runner(TARGETS, prepare, device, method, journal, lambda message: None)
    return runner.run(SENTINEL_TARGET)


def calls(outcome, kind=PACK):
    return [s for s in outcome.samples if s.call.kind == kind]


# Nonparametric 95% intervals of a median, ranks as tabulated for the sign test.
@pytest.mark.parametrize(("count", "rank"), [(5, 0), (6, 1), (8, 1), (9, 2), (20, 6), (50, 18)])
def test_interval_ranks_are_those_of_the_sign_test(count, rank):
    assert interval_rank(count) == rank


def test_interval_covers_the_median_as_often_as_it_says():
    generator = np.random.default_rng(0)
    samples = generator.exponential(size=(4000, 15))
    inside = [low <= np.log(2) <= high for low, high in map(median_interval, samples.tolist())]
    # Exact coverage at n = 15, k = 4 is 0.9648; the bounds are 4 standard errors away.
    assert 0.953 < np.mean(inside) < 0.977


def test_too_few_samples_are_never_narrow():
    assert relative_width([1.0] * 5) == float("inf")
    assert relative_width([1.0] * 6) == 0


@given(st.integers(1, 40), st.integers(0, 5), st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_a_pass_calls_every_active_pack_once(count, sweep, every):
    active = [Target(1, 0, i, "forward") for i in range(count)]
    method = Method(seed=5, sentinel_every=every)
    planned = list(sweep_calls(active, active[0], sweep, method))
    assert sorted(c.target for c in planned if c.kind == PACK) == active
    assert sum(c.kind == SENTINEL for c in planned) == -(-count // every)
    assert planned == list(sweep_calls(active, active[0], sweep, method))


def test_passes_have_orders_of_their_own():
    active = [Target(1, 0, i, "forward") for i in range(50)]
    orders = [tuple(sweep_calls(active, active[0], s, Method(seed=5))) for s in range(5)]
    assert len({tuple(c.target for c in order) for order in orders}) == 5


def test_run_ends_when_every_pack_is_settled():
    outcome = lead(StepDevice(noisy()))
    assert outcome.reason == "every pack is settled"
    assert outcome.settled == len(TARGETS)
    # Six equal samples are the fewest with a 95% interval.
    assert outcome.sweeps == 6
    assert len(calls(outcome)) == 6 * len(TARGETS)


def test_noisy_packs_get_more_samples():
    generator = np.random.default_rng(0)

    def seconds(target):
        return 1 + (0.2 * generator.standard_normal() if target.cp_size == 2 else 0)

    outcome = lead(StepDevice(seconds), max_passes=30)
    counts = {t: sum(s.call.target == t for s in calls(outcome)) for t in TARGETS}
    assert all(count == 6 for t, count in counts.items() if t.cp_size == 1)
    assert all(count > 6 for t, count in counts.items() if t.cp_size == 2)


def test_budget_is_kept_once_the_first_pass_is_made():
    outcome = lead(StepDevice(noisy(0.3)), budget_s=60.0)
    assert outcome.reason == "the budget is used up"
    # No call takes more than 2 · (1 + 5 · 0.3), and none starts that is expected to overrun.
    assert 55 < outcome.spent < 60 + 2 * 5 * 0.3
    short = lead(StepDevice(noisy(0.3)), budget_s=1.0)
    assert len(calls(short)) == len(TARGETS), "every pack needs at least one sample"


def test_the_rest_of_the_budget_goes_to_extremes_and_to_samples_that_disagree():
    targets = [Target(1, 0, pack, "forward") for pack in range(12)]
    shaky, made = targets[5], []

    def seconds(target):
        made.append(target)
        disturbed = target == shaky and made.count(shaky) == 2
        return 1 + 0.01 * target.pack + 0.3 * disturbed

    # 11 calls of warm-up, two passes of 12 packs and a sentinel, and 8 seconds to spare: enough for
    # the two slowest, the two fastest and some more, but not for a third pass.
    method = Method(seed=1, width=0.05, budget_s=11 + 26 * 1.06 + 8.5)
    runner = Runner(
        targets, lambda t: lambda: t, StepDevice(seconds), method, MemoryJournal(), lambda m: None
    )
    outcome = runner.run(targets[0])
    thirds = [s.call.target for s in calls(outcome) if s.call.sweep == 2]
    assert {*targets[:2], *targets[-2:], shaky} <= set(thirds)
    assert len(thirds) < len(targets)
    assert outcome.reason == "the budget is used up" and outcome.sweeps == 2


def test_throttled_samples_are_kept_but_settle_nothing():
    reasons = iter(["thermal"] * 40 + [""] * 1000)
    outcome = lead(StepDevice(noisy(), throttle=lambda: tuple(filter(None, [next(reasons)]))))
    marked = [s for s in outcome.samples if s.throttled]
    assert len(marked) == 40
    clean = {
        t: sum(s.call.target == t and not s.throttled for s in calls(outcome)) for t in TARGETS
    }
    assert set(clean.values()) == {6}


def test_cache_is_flushed_before_every_call_unless_warm():
    device = StepDevice(noisy())
    lead(device)
    assert device.flushed == len(device.measured)
    device = StepDevice(noisy())
    lead(device, warm_cache=True)
    assert device.flushed == 0


def test_warm_up_goes_on_until_the_sentinel_is_steady():
    falling = iter([3.0] * 2 + [2.0] * 5 + [1.5] * 5 + [1.0] * 1000)
    outcome = lead(StepDevice(lambda target: next(falling)))
    # One call of each CP degree, then windows of 5: 2.0, 1.5, 1.0 and 1.0 again.
    assert len(calls(outcome, WARMUP)) == 2 + 4 * 5


@pytest.mark.parametrize("killed_at", [0, 3, 12, 25, 40, 47])
def test_a_killed_run_repeats_at_most_one_call(killed_at):
    whole = lead(StepDevice(noisy()), max_passes=4)
    journal, made = MemoryJournal(), []

    def prepare(target):
        if len(made) == killed_at:
            raise KeyboardInterrupt
        made.append(target)
        return lambda: target

    with pytest.raises(KeyboardInterrupt):
        lead(StepDevice(noisy()), journal, prepare, max_passes=4)
    first = [s.call for s in journal.samples if s.call.kind != WARMUP]
    device = StepDevice(noisy())
    resumed = lead(device, journal, max_passes=4)
    planned = [s.call for s in whole.samples if s.call.kind != WARMUP]
    assert [s.call for s in resumed.samples if s.call.kind != WARMUP] == planned
    warm = sum(s.call.kind == WARMUP for s in whole.samples)
    assert len(device.measured) == warm + len(planned) - len(first)
    assert resumed.spent == pytest.approx(sum(s.seconds for s in journal.samples))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 0}, "width is 0"),
        ({"width": float("nan")}, "width is nan"),
        ({"budget_s": -1}, "budget_s is -1"),
        ({"max_passes": 0}, "max_passes is 0"),
        ({"sentinel_every": 0}, "sentinel_every is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_methods_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        Method(**{"seed": 0, **change})
