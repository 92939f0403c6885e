"""``cpbalance calibrate``: fit a kernel's time from measured packs."""

import argparse
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpbalance.calibration import Calibration, Calls, calibrate, predicted_seconds
from cpbalance.calibration_file import describe, document
from cpbalance.cli.time_packs import Packs, read_packs, source_of
from cpbalance.errors import InputError
from cpbalance.stage_schemas import TIMINGS
from cpbalance.table_schemas import CALIBRATION_FIT
from cpbalance.tables import read_provenance, read_table, replacing, write_table
from cpbalance.tiles import known_tile, tiles_to_try
from cpbalance.timing.plan import Target
from cpbalance.timing.summary import PackTime, pack_times

logger = logging.getLogger("cpbalance")

HELP = "fit a kernel's time from measured packs"

# Kernels that are called segment by segment; the others take a whole pack in one call.
SEGMENT_LOOPS = ("torch_cpu",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    parser.add_argument(
        "--timings", type=Path, nargs="+", required=True, help="files of the time stage"
    )
    parser.add_argument(
        "--packs", type=Path, nargs="+", required=True, help="the packs that were timed"
    )
    parser.add_argument("--table", type=Path, required=True, help="measured and predicted times")
    parser.add_argument("--output", type=Path, required=True, help="coefficients and errors, JSON")


@dataclass(frozen=True)
class Timed:
    """One timings file with the packs it was taken on."""

    lengths: str
    times: dict[Target, PackTime]
    packs: Packs
    provenance: dict[str, Any]


def run(args: argparse.Namespace) -> None:
    """Write the calibration and the table of measured and predicted times."""
    timed = [load(path, args.packs) for path in args.timings]
    check_alike(args.timings, timed)
    provenance = timed[0].provenance
    kernel, attention = provenance["kernel"]["name"], provenance["attention"]
    known = known_tile(kernel, attention["head_dim"], attention["causal"])
    described, columns = {}, []
    for direction in provenance["directions"]:
        keys, calls = gather(timed, direction, attention, kernel in SEGMENT_LOOPS)
        result = calibrate(calls, tiles_to_try(kernel), known)
        described[direction] = describe(result, calls)
        names = {"kernel": kernel, "attention": attention["name"], "direction": direction}
        columns.append(fit_columns(names, keys, calls, result))
        report(kernel, direction, result, described[direction])
    runs = [run for item in timed for run in item.provenance["runs"]]
    devices = sorted({run["environment"]["device"] for run in runs})
    sources = [item.provenance for item in timed]
    found = document(kernel, attention, provenance["clock"], devices, described, sources)
    joined = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
    made = {"stage": "calibrate", "kernel": kernel, "attention": attention, "devices": devices}
    write_table(args.table, CALIBRATION_FIT, joined, {**made, "clock": provenance["clock"]})
    with replacing(args.output) as partial:
        partial.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load(path: Path, pack_files: Sequence[Path]) -> Timed:
    """Read one timings file and the packs it was taken on, out of ``pack_files``."""
    provenance = read_provenance(path, TIMINGS)
    source = provenance["source"]
    cp_sizes = {int(name.removeprefix("cp")) for name in provenance["heads"]}
    files = [f for f in pack_files if source_of(f)[1] == source and source_of(f)[0] in cp_sizes]
    if {source_of(f)[0] for f in files} != cp_sizes:
        raise InputError(
            f"{path}: was taken on packs of cp_size {sorted(cp_sizes)} that are not all among "
            f"--packs; name them all"
        )
    for run in provenance["runs"]:
        if read_packs(files, tuple(run["steps"])).digest() != run["packs_digest"]:
            raise InputError(
                f"{path}: was taken on other packs than those of {files[0].parent}; time again"
            )
    steps = [run["steps"] for run in provenance["runs"]]
    packs = read_packs(files, (min(s[0] for s in steps), max(s[1] for s in steps)))
    times = pack_times(read_table(path, TIMINGS))
    return Timed(source.get("source", {}).get("name", path.stem), times, packs, provenance)


def check_alike(paths: Sequence[Path], timed: Sequence[Timed]) -> None:
    """Raise :class:`~cpbalance.errors.InputError` unless one kernel and setting was timed."""
    for path, item in zip(paths, timed, strict=True):
        for key in ("kernel", "attention", "directions", "clock"):
            first, other = timed[0].provenance[key], item.provenance[key]
            if key == "attention":
                first, other = ({**a, "name": None} for a in (first, other))
            if first != other:
                raise InputError(
                    f"{path}: was timed with another {key} than {paths[0]}; calibrate them apart"
                )


def gather(
    timed: Sequence[Timed], direction: str, attention: Mapping[str, Any], segment_loop: bool
) -> tuple[list[tuple[str, Target, PackTime]], Calls]:
    """All packs of one direction, as keys and as calls to fit."""
    keys = [
        (item.lengths, target, time)
        for item in timed
        for target, time in item.times.items()
        if target.direction == direction
    ]
    packs = {item.lengths: item.packs.segments for item in timed}
    calls = Calls(
        segments=[packs[name][t.cp_size, t.step, t.pack] for name, t, _ in keys],
        q_heads=np.array([time.q_heads for _, _, time in keys], dtype=np.int64),
        seconds=np.array([time.seconds for _, _, time in keys]),
        pack=np.arange(len(keys)),
        head_dim=attention["head_dim"],
        causal=attention["causal"],
        segment_loop=segment_loop,
    )
    return keys, calls


def fit_columns(
    names: Mapping[str, str],
    keys: Sequence[tuple[str, Target, PackTime]],
    calls: Calls,
    result: Calibration,
) -> dict[str, NDArray]:
    """Columns of the table of measured and predicted times, a row a pack."""
    times = [time for _, _, time in keys]
    return {
        **{key: np.array([name] * len(keys), dtype=object) for key, name in names.items()},
        "lengths": np.array([name for name, _, _ in keys], dtype=object),
        "cp_size": np.array([t.cp_size for _, t, _ in keys]),
        "step": np.array([t.step for _, t, _ in keys]),
        "pack": np.array([t.pack for _, t, _ in keys]),
        "q_heads": calls.q_heads,
        "num_tokens": np.array([time.num_tokens for time in times]),
        "num_segments": np.array([time.num_segments for time in times]),
        "samples": np.array([time.samples for time in times]),
        "measured": calls.seconds,
        "low": np.array([time.low for time in times]),
        "high": np.array([time.high for time in times]),
        "predicted": predicted_seconds(result.model, calls),
        "held_out_error": result.held_out,
        "quadratic_error": result.quadratic,
    }


def report(kernel: str, direction: str, result: Calibration, described: Mapping[str, Any]) -> None:
    """Two lines to the log: what was chosen, and how good it is."""
    terms = ", ".join(f"{k} {v:.3g}" for k, v in result.model.coefficients.items())
    logger.info(
        "cpbalance calibrate: %s %s: tile %s, %s (s), R² %.4f",
        *(kernel, direction, result.model.tile, terms, described["r_squared"]),
    )
    quadratic = described["quadratic_held_out"]
    logger.info(
        "cpbalance calibrate: held-out error: median %.1f%%, worst %.1f%%; of the quadratic model: "
        "median %.1f%%, worst %.1f%%",
        *(100 * result.median_error, 100 * result.worst_error),
        *(100 * quadratic["median"], 100 * quadratic["worst"]),
    )
