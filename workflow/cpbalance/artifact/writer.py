"""Writing an artifact: gather files, describe them, sum them, zip them, the same way every time."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cpbalance.artifact import format as fmt
from cpbalance.artifact.archive import write_zip
from cpbalance.artifact.crate import MEDIA_TYPES, crate_metadata
from cpbalance.artifact.members import check_table
from cpbalance.artifact.reader import open_artifact
from cpbalance.errors import InputError
from cpbalance.tables import file_digest, replacing


def write_artifact(
    target: Path | str,
    experiment: str,
    files: Mapping[str, Path],
    documents: Mapping[str, Mapping[str, Any]],
    license_id: str,
) -> None:
    """Write the artifact of ``experiment`` to ``target``.

    ``files`` maps member names (paths under ``results/{experiment}/``) to files; ``documents``
    holds ``config``, ``run`` (with ``command``, ``date`` and ``version``) and ``environment``.
    Raises :class:`~cpbalance.errors.InputError` for a file that has no place in an artifact.
    """
    for member, path in files.items():
        _check_member(member, path)
    stages = [stage for stage in fmt.STAGES if any(fmt.stage_of(m) == stage for m in files)]
    descriptor = {
        "format": fmt.FORMAT,
        "version": fmt.VERSION,
        "experiment": experiment,
        "stages": stages,
    }
    contents: dict[str, bytes | Path] = {
        fmt.DESCRIPTOR: _json(descriptor),
        fmt.CONFIG: _json(documents["config"]),
        fmt.RUN: _json(documents["run"]),
        fmt.ENVIRONMENT: _json(documents["environment"]),
    }
    contents.update((member, files[member]) for member in sorted(files))
    contents[fmt.CRATE] = crate_metadata(
        experiment, [*contents, fmt.MANIFEST], documents["run"], license_id
    )
    digests = {
        name: hashlib.sha256(content).hexdigest()
        if isinstance(content, bytes)
        else file_digest(content)
        for name, content in contents.items()
    }
    contents[fmt.MANIFEST] = fmt.manifest_text(digests).encode()
    with replacing(target) as partial:
        write_zip(partial, contents)
        # What a reader would refuse must not leave here; this also reads back what was written.
        with open_artifact(partial, experiment):
            pass


def _check_member(member: str, path: Path) -> None:
    """Raise InputError unless the file can be a member of an artifact."""
    fault = fmt.name_fault(member)
    if fault is None and fmt.stage_of(member) not in fmt.STAGES:
        fault = f"in no stage ({', '.join(fmt.STAGES)})"
    if fault is None and path.suffix not in MEDIA_TYPES:
        fault = f"of a kind that artifacts do not hold ({', '.join(MEDIA_TYPES)})"
    if fault is not None:
        raise InputError(f"{path}: {member!r} is {fault}; leave it out")
    if not path.is_file():
        raise InputError(f"{path}: no such file; run the stage that writes it")
    if path.suffix == ".parquet":
        with path.open("rb") as stream:
            check_table(str(path), member, stream)


def _json(value: Mapping[str, Any]) -> bytes:
    # In the order given: the order of lengths in a configuration is that of panels and rows.
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()
