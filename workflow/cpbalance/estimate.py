"""What timing an experiment will cost in GPU-minutes, before anything is submitted.

One pass calls every pack of every CP degree once. A pack is settled by the 95% interval of its
median, which takes at least 6 samples, so the least is 6 passes; the most is the budget of every
job. The time of a call is that of the ``h100-fa3`` cost model (FlashAttention-3 paper, see
:mod:`cpbalance.costs`) on documents drawn as the sample stage draws them; where that model does not
hold (another head dimension, a backward pass), only the most is known. What surrounds a call and a
job is assumed, not measured: :data:`CALL_S` and :data:`START_S`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpbalance.attention import Attention
from cpbalance.config import Config
from cpbalance.costs import cost_model
from cpbalance.errors import InputError
from cpbalance.lengths import make_sampler
from cpbalance.packing import pack_documents

PASSES = 6
# Around a call: the cache is flushed, the device held, its state asked for.
CALL_S = 2e-3
# Around a job: imports, the GPU's context, the check against float64.
START_S = 60.0
MODEL = "h100-fa3"


@dataclass(frozen=True)
class TimingCost:
    """One file of timings: its jobs, the calls of one pass over all of them, minutes of GPU.

    ``least`` is None where no model of the kernel's time holds.
    """

    name: str
    jobs: int
    calls: int
    least: float | None
    most: float


def timing_costs(config: Config, populations: Mapping[str, NDArray[np.int64]]) -> list[TimingCost]:
    """Costs of all timings on a GPU; ``populations`` are the lengths of files, by name.

    Raises :class:`~cpbalance.errors.InputError` where nothing is timed on a GPU.
    """
    found = list(_costs(config, populations))
    if not found:
        raise InputError(
            "this experiment times no kernel on a GPU: give one with timing, as config/h100.yaml"
        )
    return found


def _costs(config: Config, populations: Mapping[str, NDArray[np.int64]]) -> Iterator[TimingCost]:
    for kernel, run in config.timing.items():
        if kernel == "torch_cpu":
            continue
        jobs = config.shards.time
        directions = 2 if run.direction == "both" else 1
        for layer in run.attention:
            shape = config.attention[layer]
            attention = Attention(shape.q_heads, shape.kv_heads, shape.head_dim, shape.causal)
            modelled = shape.head_dim == 128 and run.direction == "forward"
            for lengths in run.lengths:
                calls, seconds = 0, 0.0
                for cp_size in run.cp_sizes or config.cluster.cp_sizes:
                    packs = config.cluster.dp_size(cp_size)
                    calls += packs * run.steps * directions
                    if modelled:
                        times = pack_seconds(
                            config, lengths, populations, attention, cp_size, run.packing
                        )
                        seconds += run.steps * float(times.sum())
                passes = PASSES * (seconds + calls * CALL_S)
                most = max(run.budget_s * jobs, seconds + calls * CALL_S)
                yield TimingCost(
                    name=f"{kernel}/{layer}/{lengths}",
                    jobs=jobs,
                    calls=calls,
                    least=(min(passes, most) + jobs * START_S) / 60 if modelled else None,
                    most=(most + jobs * START_S) / 60,
                )


def pack_seconds(
    config: Config,
    lengths: str,
    populations: Mapping[str, NDArray[np.int64]],
    attention: Attention,
    cp_size: int,
    packing: str,
) -> NDArray[np.float64]:
    """Modelled seconds of every pack of the first step on one rank, shape (dp_size,)."""
    cluster = config.cluster
    documents = make_sampler(
        lengths,
        config.lengths[lengths],
        cluster.tokens_per_gpu,
        cluster.tokens_per_step,
        config.seed,
        populations.get(lengths),
    ).documents(0)
    packs = cluster.dp_size(cp_size)
    segments = pack_documents(
        packing,
        documents,
        np.array([len(documents)]),
        cp_size * cluster.tokens_per_gpu,
        packs,
    )
    model = cost_model(MODEL, attention, cp_size)
    per_segment = model.segment(segments.segment_tokens)
    return 1e-3 * (model.fixed + np.bincount(segments.pack, per_segment, minlength=packs))
