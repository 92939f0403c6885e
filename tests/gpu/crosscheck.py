"""Packs timed again by triton's do_bench, beside the medians of a timings file.

Both time the same call on the same data. What differs is how the host and the cache are kept out:
do_bench clears 256 MB before a call and does not hold the device.
"""

import argparse
import csv
import time
from pathlib import Path

from cpbalance.attention import Attention
from cpbalance.cli.time_packs import read_packs
from cpbalance.kernels import find_kernel
from cpbalance.kernels.base import FORWARD
from cpbalance.stage_schemas import TIMINGS
from cpbalance.tables import read_provenance, read_table
from cpbalance.timing.summary import pack_times
from cpbalance.timing.workload import HeadCount, Workload

PACKS = 20


def main() -> None:
    """Write one row a pack, evenly spread over the measured times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timings", type=Path, required=True)
    parser.add_argument("--packs", type=Path, nargs="+", required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    try:
        from triton.testing import do_bench
    except ImportError as error:
        print(f"no cross-check: triton is not here ({error})")
        return
    provenance = read_provenance(args.timings, TIMINGS)
    if provenance["clock"] != "CUDA events around a call":
        print("no cross-check: do_bench times CUDA calls, and these are not")
        return
    (run,) = provenance["runs"]
    packs = read_packs(args.packs, tuple(run["steps"]))
    layer = dict(provenance["attention"])
    layer.pop("name")
    attention = Attention(**layer)
    kernel = find_kernel(provenance["kernel"]["name"], attention, (FORWARD,))
    heads = {int(k.removeprefix("cp")): HeadCount(**v) for k, v in provenance["heads"].items()}
    seed = provenance["method"]["seed"]
    workload = Workload(kernel, attention, heads, packs.largest(), seed)
    times = pack_times(read_table(args.timings, TIMINGS))
    ordered = sorted((t for t in times if t.direction == FORWARD), key=lambda t: times[t].seconds)
    chosen = [ordered[i * (len(ordered) - 1) // (PACKS - 1)] for i in range(PACKS)]
    a_pack = run["budget_used_s"] / run["targets"]
    rows = []
    for target in chosen:
        call = workload.call(target, packs.segments[target.cp_size, target.step, target.pack])
        start = time.monotonic()
        theirs = do_bench(call, return_mode="median")
        spent = time.monotonic() - start
        ours = 1e3 * times[target].seconds
        rows.append([target.cp_size, target.step, target.pack, ours, theirs, ours / theirs - 1])
        rows[-1] += [times[target].samples, a_pack, spent]
    names = ["cp_size", "step", "pack", "median_ms", "do_bench_ms", "relative_difference"]
    names += ["samples", "seconds_a_pack", "do_bench_seconds_a_pack"]
    with args.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([names, *rows])
    differences = sorted(abs(row[5]) for row in rows)
    print(
        f"{PACKS} packs: median difference {100 * differences[PACKS // 2]:.2f}%, largest "
        f"{100 * differences[-1]:.2f}%; seconds a pack: {a_pack:.3f} here, "
        f"{sum(row[8] for row in rows) / PACKS:.3f} by do_bench"
    )


if __name__ == "__main__":
    main()
