import pyarrow as pa
import pytest

from cpbalance.errors import InputError
from cpbalance.stage_schemas import TIMINGS
from cpbalance.timing.plan import Target
from cpbalance.timing.summary import pack_times


def table(rows):
    """A timings table from (kind, pack, seconds, throttled)."""
    defaults = {"step": 0, "cp_size": 4, "direction": "forward", "pass": 0, "order": 0}
    counts = {"num_tokens": 64, "num_segments": 2, "q_heads": 2, "kv_heads": 1}
    rank = {"rank_q_heads": 16, "rank_kv_heads": 8}
    states = {"clock_mhz": None, "power_w": None, "temperature_c": None}
    names = ("kind", "pack", "seconds", "throttled")
    full = [
        {**defaults, **counts, **rank, **states, **dict(zip(names, row, strict=True))}
        for row in rows
    ]
    return pa.Table.from_pylist(full, schema=TIMINGS.arrow({}))


def test_median_of_packs_without_warm_up_sentinel_and_throttled_samples():
    rows = [("pack", 0, s, False) for s in (3.0, 1.0, 2.0)]
    rows += [("warmup", 0, 90.0, False), ("sentinel", 0, 80.0, False), ("pack", 0, 70.0, True)]
    (time,) = pack_times(table(rows)).values()
    assert time.seconds == 2.0 and time.samples == 3
    # 2 of the rank's 16 query heads were timed.
    assert time.rank_seconds == 16.0


def test_samples_whose_throttling_is_unknown_count():
    (time,) = pack_times(table([("pack", 0, s, None) for s in (3.0, 1.0, 2.0)])).values()
    assert time.seconds == 2.0 and time.samples == 3


def test_interval_needs_six_samples():
    rows = [("pack", p, float(s), False) for p, n in ((0, 5), (1, 6)) for s in range(1, n + 1)]
    times = pack_times(table(rows))
    assert times[Target(4, 0, 0, "forward")].low != times[Target(4, 0, 0, "forward")].low
    assert times[Target(4, 0, 1, "forward")].low == 1.0
    assert times[Target(4, 0, 1, "forward")].high == 6.0


def test_a_pack_that_was_always_throttled_is_an_error():
    rows = [("pack", 0, 1.0, True), ("pack", 1, 1.0, False)]
    with pytest.raises(InputError, match="1 of 2 packs have samples under throttling alone"):
        pack_times(table(rows))
