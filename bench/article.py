"""Sampling, packing and costing the article's experiment, beside its recipe as plain loops.

Both families, CP 1 … 64. The plain loops draw anew for every CP degree, as the article does; the
time of one of their steps does not depend on how many there are, so they run fewer.
"""

import time

import numpy as np
import pandas as pd

from cpbalance.attention import Attention
from cpbalance.config_lengths import Exponential, Normal
from cpbalance.costs import cost_model
from cpbalance.lengths import make_sampler
from cpbalance.packing import pack_documents
from cpbalance.streams import step_generator
from tests.plain import draws, step_costs

STEPS, PLAIN_STEPS, ROUNDS = 100, 3, 5
WORLD, TOKENS = 128, 8192
CP_SIZES = (1, 2, 4, 8, 16, 32, 64)
LAYER = Attention(64, 64, 128, causal=False)
FAMILIES = {
    "exponential": Exponential(
        family="exponential", mean=1024.0, min_tokens=10, max_seq_len=TOKENS
    ),
    "normal": Normal(family="normal", mean=1024.0, cv=0.25, min_tokens=10, max_seq_len=TOKENS),
}


def _plain() -> float:
    """Seconds a step of the plain loops, all families and degrees."""
    rng = np.random.default_rng(0)
    scalar = {
        "exponential": lambda: rng.exponential(1024.0),
        "normal": lambda: rng.normal(1024.0, 256.0),
    }
    start = time.perf_counter()
    for name in FAMILIES:
        for cp_size in CP_SIZES:
            for _ in range(PLAIN_STEPS):
                step_costs(draws(scalar[name], 10, TOKENS), WORLD, cp_size, TOKENS)
    return (time.perf_counter() - start) / PLAIN_STEPS


def _ours() -> dict[str, float]:
    """Seconds a step of each stage, all families and degrees."""
    spent = {"sample": 0.0, "pack": 0.0, "cost": 0.0}
    for name, lengths in FAMILIES.items():
        start = time.perf_counter()
        sampler = make_sampler(name, lengths, TOKENS, WORLD * TOKENS, seed=0)
        steps = [sampler.documents(step) for step in range(STEPS)]
        documents, counts = np.concatenate(steps), np.array([len(step) for step in steps])
        spent["sample"] += time.perf_counter() - start
        for cp_size in CP_SIZES:
            groups = WORLD // cp_size
            start = time.perf_counter()
            packed = pack_documents("concat_split", documents, counts, cp_size * TOKENS, groups)
            middle = time.perf_counter()
            segment = cost_model("quadratic", LAYER, cp_size).segment(packed.segment_tokens)
            first = np.flatnonzero(np.diff(packed.pack, prepend=-1))
            np.add.reduceat(segment, first)
            spent["pack"] += middle - start
            spent["cost"] += time.perf_counter() - middle
    return {stage: seconds / STEPS for stage, seconds in spent.items()}


def _random_numbers() -> float:
    """Seconds a step to draw the random numbers alone, both families, one call a step."""
    count = WORLD * TOKENS // 1024
    start = time.perf_counter()
    for step in range(STEPS):
        step_generator(0, "exponential", step).exponential(1024.0, count)
        step_generator(0, "normal", step).normal(1024.0, 256.0, count)
    return (time.perf_counter() - start) / STEPS


def run() -> pd.DataFrame:
    """Best of some rounds; documents a second count each document once a stage."""
    plain = min(_plain() for _ in range(2))
    rounds = [_ours() for _ in range(ROUNDS)]
    ours = {stage: min(each[stage] for each in rounds) for stage in rounds[0]}
    numbers = min(_random_numbers() for _ in range(ROUNDS))
    documents = 2 * WORLD * TOKENS / 1024
    passes = {"sample": 1, "pack": len(CP_SIZES), "cost": len(CP_SIZES)}
    rows = [
        {
            "what": stage,
            "ms a step": 1e3 * seconds,
            "documents/s": passes[stage] * documents / seconds,
            "over random numbers": seconds / passes[stage] / numbers,
            "plain loops / this": np.nan,
        }
        for stage, seconds in ours.items()
    ]
    total = sum(ours.values())
    rows.append(
        {"what": "all three", "ms a step": 1e3 * total, "plain loops / this": plain / total}
    )
    rows.append({"what": "plain loops", "ms a step": 1e3 * plain, "plain loops / this": 1.0})
    rows.append(
        {
            "what": "random numbers alone",
            "ms a step": 1e3 * numbers,
            "documents/s": documents / numbers,
            "over random numbers": 1.0,
        }
    )
    return pd.DataFrame(rows)
