"""Simulate theory-reference.csv: what a correct theory has to predict.

20,000 steps a row of the article's setting (128 devices, 8192 tokens each, documents cut at 8192),
written apart from the library: documents are laid end to end, cut at every pack, and squared. Run
``python theory_reference.py FOLDER > theory-reference.csv`` with the folder of the length files;
some minutes on one core. Standard errors are over steps, that of the CV by jackknife over 100
batches of steps.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

WORLD, TOKENS, STEPS, BATCH = 128, 8192, 20_000, 100
CP_SIZES = (1, 2, 4, 8, 16, 32, 64)
FILES = ("linux-6.1-code", "linux-6.1-docs", "wikipedia", "wlb-128k")


def exponential(generator, total):
    """The article's exponential lengths: raised to 10, cut at 8192, rounded down."""
    return np.clip(generator.exponential(1024, int(total / 1024 * 1.3) + 2000), 10, 8192).astype(
        np.int64
    )


def normal(generator, total):
    """The article's normal lengths, in the same way."""
    return np.clip(generator.normal(1024, 256, int(total / 1024 * 1.3) + 2000), 10, 8192).astype(
        np.int64
    )


def from_file(path):
    """Draws with replacement from a file's lengths, empty ones left out, cut at 8192."""
    lengths = pq.read_table(path)["num_tokens"].to_numpy().astype(np.int64)
    lengths = np.minimum(lengths[lengths > 0], TOKENS)
    mean, deviation = lengths.mean(), lengths.std()

    def draw(generator, total):
        count = total / mean
        count = int(count + 12 * np.sqrt(count) * deviation / mean + 50)
        return lengths[generator.integers(0, len(lengths), count)]

    return draw


def simulate(draw, seed):
    """CP degree -> costs of all packs, (steps, groups)."""
    generator = np.random.default_rng(seed)
    total = WORLD * TOKENS
    costs = {cp_size: [] for cp_size in CP_SIZES}
    for _ in range(0, STEPS, BATCH):
        ends = []
        for step in range(BATCH):
            filled = np.cumsum(draw(generator, total))
            inside = filled[: np.searchsorted(filled, total)]
            ends.append(np.append(inside, total) + step * total)
        ends = np.concatenate(ends)
        for cp_size, parts in costs.items():
            pack = TOKENS * cp_size
            cuts = np.arange(pack, BATCH * total + 1, pack)
            joined = np.union1d(ends, cuts)
            segments = np.diff(joined, prepend=0).astype(np.float64)
            first = np.searchsorted(joined, cuts - pack, side="right")
            parts.append(np.add.reduceat(segments**2, first).reshape(BATCH, -1) / cp_size)
    return {cp_size: np.concatenate(parts) for cp_size, parts in costs.items()}


def summary(cost):
    """Metric -> value and standard error."""
    mean, high, low = cost.mean(axis=1), cost.max(axis=1), cost.min(axis=1)
    per_step = {
        "mean": mean,
        "imbalance": (high - low) / mean,
        "max_over_mean": high / mean,
        "max_over_min": high / low,
        "waiting_share": 1 - mean / high,
    }
    out = {k: (v.mean(), v.std() / np.sqrt(len(v))) for k, v in per_step.items()}
    batches = cost.reshape(100, -1)
    sums = np.stack([batches.sum(axis=1), (batches**2).sum(axis=1)])

    def cv(first, second, count):
        return np.sqrt(second / count - (first / count) ** 2) / (first / count)

    whole = sums.sum(axis=1)
    left_out = cv(*(whole[:, None] - sums), cost.size - batches.shape[1])
    error = np.sqrt(99 / 100 * ((left_out - left_out.mean()) ** 2).sum())
    return out | {"cv": (cv(*whole, cost.size), error)}


def main():
    """Print the table."""
    folder = Path(sys.argv[1])
    sources = {"exponential": exponential, "normal": normal}
    sources |= {name: from_file(folder / f"{name}-lengths.parquet") for name in FILES}
    print("lengths,cp_size,metric,value,standard_error")
    for index, (name, draw) in enumerate(sources.items()):
        for cp_size, cost in simulate(draw, seed=1000 + index).items():
            for metric, (value, error) in summary(cost).items():
                print(f"{name},{cp_size},{metric},{value:.8g},{error:.3g}", flush=True)


if __name__ == "__main__":
    main()
