"""The packs that a timing run or a calibration works on, read from files of the pack stage."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpbalance.errors import InputError
from cpbalance.shards import parse_shard
from cpbalance.stage_schemas import PACKS
from cpbalance.tables import iter_row_groups, read_provenance

# What differs between the packs of one experiment's CP degrees.
OF_ONE_CP = ("cp_size", "dp_size")


@dataclass(frozen=True)
class Packs:
    """Segment lengths of every pack by (cp_size, step, pack), of the steps [first, stop)."""

    segments: dict[tuple[int, int, int], NDArray[np.int64]]
    steps: tuple[int, int]
    source: dict[str, Any]

    @property
    def cp_sizes(self) -> list[int]:
        """CP degrees, smallest first."""
        return sorted({cp for cp, _, _ in self.segments})

    def of(self, cp_size: int) -> list[NDArray[np.int64]]:
        """Packs of one CP degree."""
        return [segments for (cp, _, _), segments in self.segments.items() if cp == cp_size]

    def largest(self) -> dict[int, int]:
        """Tokens of the largest pack of each CP degree."""
        return {cp: max(int(s.sum()) for s in self.of(cp)) for cp in self.cp_sizes}

    def digest(self) -> str:
        """SHA-256, 16 hex digits, of all that :attr:`segments` holds."""
        digest = hashlib.sha256()
        for key in sorted(self.segments):
            digest.update(np.asarray(key, dtype="<i8").tobytes())
            digest.update(self.segments[key].astype("<i8").tobytes() + b"|")
        return digest.hexdigest()[:16]


def step_range(steps: int | None, text: str | None, shard: str | None = None) -> tuple[int, int]:
    """Steps [first, stop) from a count or from ``first:stop``, or the share of a shard of them."""
    if steps is not None:
        if steps < 1:
            raise InputError(f"--steps is {steps}: give at least 1")
        first, stop = 0, steps
    else:
        left, colon, right = (text or "").partition(":")
        if not (colon and left.isdecimal() and right.isdecimal() and int(left) < int(right)):
            raise InputError(f"--step-range is {text!r}: give FIRST:STOP with FIRST below STOP")
        first, stop = int(left), int(right)
    if shard is None:
        return first, stop
    share = parse_shard(shard).share(stop - first)
    if not share:
        raise InputError(f"--shard {shard} of {stop - first} steps is empty: use fewer shards")
    return first + share.start, first + share.stop


def source_of(path: Path) -> tuple[int, dict[str, Any]]:
    """CP degree of a file of packs, and what it has in common with those of other degrees."""
    provenance = read_provenance(path, PACKS)
    common = {key: value for key, value in provenance.items() if key not in OF_ONE_CP}
    return provenance["cp_size"], common


def read_packs(paths: Sequence[Path], steps: tuple[int, int]) -> Packs:
    """Read the packs of some steps from one file a CP degree.

    Raises :class:`~cpbalance.errors.InputError` for two files of one CP degree, files of different
    experiments, or steps that a file does not have.
    """
    segments: dict[tuple[int, int, int], NDArray[np.int64]] = {}
    files: dict[int, Path] = {}
    source: dict[str, Any] | None = None
    for path in paths:
        cp_size, common = source_of(path)
        if cp_size in files:
            raise InputError(f"{path}: has cp_size {cp_size} like {files[cp_size]}; give each once")
        if source is not None and common != source:
            raise InputError(
                f"{path}: was not packed from the same lengths with the same settings as "
                f"{next(iter(files.values()))}; give packs that differ in cp_size alone"
            )
        files[cp_size], source = path, common
        found = _read_steps(path, cp_size, steps)
        missing = set(range(*steps)) - {step for _, step, _ in found}
        if missing:
            raise InputError(
                f"{path}: has no step {min(missing)}; ask for fewer steps or sample more"
            )
        segments.update(found)
    return Packs(segments, steps, source or {})


def _read_steps(
    path: Path, cp_size: int, steps: tuple[int, int]
) -> dict[tuple[int, int, int], NDArray[np.int64]]:
    """Segments by (cp_size, step, pack) of the steps [first, stop) of one file."""
    found = {}
    for group in iter_row_groups(path, PACKS):
        step, pack, tokens = (group[name].to_numpy() for name in ("step", "pack", "segment_tokens"))
        inside = (step >= steps[0]) & (step < steps[1])
        step, pack, tokens = step[inside], pack[inside], tokens[inside].astype(np.int64)
        if len(step) == 0:
            continue
        starts = np.flatnonzero(np.diff(step, prepend=-1) | np.diff(pack, prepend=-1))
        for start, part in zip(starts, np.split(tokens, starts[1:]), strict=True):
            found[cp_size, int(step[start]), int(pack[start])] = part
    return found
