"""Samples of a timing run on disk, so that a run that is killed goes on where it was.

One JSON object a line: first the plan, then a line a sample, flushed as it is taken. A last line
that was cut short is dropped.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cpbalance.tables import canonical_json
from cpbalance.timing.device import State
from cpbalance.timing.plan import Call, Target
from cpbalance.timing.runner import Sample


class FileJournal:
    """Journal of the plan ``plan`` at ``path``; a journal of another plan is started afresh."""

    def __init__(self, path: Path, plan: Mapping[str, Any], log: Callable[[str], None]) -> None:
        self._path, self._samples = path, []
        header = canonical_json({"plan": plan})
        # Whole lines only: the one being written when the run was killed is measured again.
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        if lines and lines[0] == header:
            self._samples = [_decode(json.loads(line)) for line in lines[1:]]
        elif text:
            log(f"{path}: belongs to another plan or kind of device; starting afresh")
            lines = []
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = "".join(f"{line}\n" for line in lines or [header])
        partial = path.with_name(f"{path.name}.new")
        partial.write_text(kept, encoding="utf-8")
        partial.replace(path)
        self._file = path.open("a", encoding="utf-8")

    def replay(self) -> Sequence[Sample]:
        """Samples of an interrupted run of the same plan, in order."""
        return self._samples

    def append(self, sample: Sample) -> None:
        """Keep a sample; it survives the process from here on."""
        self._file.write(canonical_json(asdict(sample)) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Leave the journal on disk, whole."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def discard(self) -> None:
        """Remove the journal, once its samples stand in the final file."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def _decode(record: Mapping[str, Any]) -> Sample:
    call = record["call"]
    return Sample(
        call=Call(call["kind"], call["sweep"], Target(**call["target"])),
        seconds=record["seconds"],
        throttle=None if record["throttle"] is None else tuple(record["throttle"]),
        spent=record["spent"],
        state=State(**record["state"]),
        device=record["device"],
    )
