"""Schemas of the stage files: what sampling, packing, costing and timing write."""

import pyarrow as pa

from cpbalance.tables import Schema

LENGTHS = Schema("lengths", 1, {"step": (pa.int32(), "1"), "num_tokens": (pa.int64(), "tokens")})
PACKS = Schema(
    "packs",
    1,
    {
        "step": (pa.int32(), "1"),
        "pack": (pa.int32(), "1"),
        "segment_tokens": (pa.int32(), "tokens"),
    },
)
COSTS = Schema(
    "costs",
    1,
    {
        "step": (pa.int32(), "1"),
        "pack": (pa.int32(), "1"),
        "attention_pairs": (pa.int64(), "pairs of one head"),
        "cost": (pa.float64(), "given in provenance: cost_unit"),
    },
)
TIMINGS = Schema(
    "timings",
    1,
    {
        "step": (pa.int32(), "1"),
        "cp_size": (pa.int32(), "1"),
        "pack": (pa.int32(), "1"),
        "direction": (pa.string(), "forward or backward"),
        "kind": (pa.string(), "pack, sentinel or warmup"),
        "pass": (pa.int32(), "1, from 0"),
        "order": (pa.int32(), "1, from 0 in each run"),
        "seconds": (pa.float64(), "s, of the clock given in provenance"),
        "throttled": (pa.bool_(), "left out of medians"),
        "num_tokens": (pa.int64(), "tokens"),
        "num_segments": (pa.int32(), "1"),
        "q_heads": (pa.int32(), "query heads timed"),
        "kv_heads": (pa.int32(), "key-value heads timed"),
        "rank_q_heads": (pa.int32(), "query heads of a rank"),
        "rank_kv_heads": (pa.int32(), "key-value heads of a rank"),
        "clock_mhz": (pa.float32(), "MHz"),
        "power_w": (pa.float32(), "W"),
        "temperature_c": (pa.float32(), "degrees Celsius"),
    },
)
