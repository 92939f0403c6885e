"""Reading an artifact that may be damaged, hostile, newer than this code or of another run.

Everything is checked before anything is written: the zip's directory, the format version, the
manifest against the members both ways, every SHA-256, and the columns of every table. Extraction
then goes to a folder beside the target, and each file is moved into place whole.
"""

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cpbalance.artifact import archive as zips
from cpbalance.artifact import format as fmt
from cpbalance.artifact.members import check_table
from cpbalance.errors import InputError


@dataclass(frozen=True)
class Artifact:
    """A checked artifact, open for reading.

    ``sizes`` and ``digests`` map every member to its bytes and SHA-256; ``experiment``,
    ``config``, ``run`` and ``environment`` are its documents.
    """

    path: Path
    experiment: str
    stages: tuple[str, ...]
    config: Mapping[str, Any]
    run: Mapping[str, Any]
    environment: Mapping[str, Any]
    sizes: Mapping[str, int]
    digests: Mapping[str, str]
    archive: zipfile.ZipFile

    def members(self, stage: str) -> list[str]:
        """Members of one stage folder, in the order of names."""
        return sorted(name for name in self.sizes if fmt.stage_of(name) == stage)

    def read(self, member: str) -> bytes:
        """Content of a member; raises InputError if the artifact does not hold it."""
        if member not in self.sizes:
            raise InputError(
                f"{self.path}: holds no {member}; it holds {', '.join(self.stages) or 'no stage'}: "
                f"list all with 'cpbalance artifact show {self.path}'"
            )
        return b"".join(zips.member_chunks(self.archive, member))

    def buffer(self, member: str) -> pa.BufferReader:
        """Content of a member as a file for pyarrow."""
        return pa.BufferReader(self.read(member))

    def table(self, member: str) -> pa.Table:
        """A Parquet member as a table."""
        return pq.read_table(self.buffer(member))


@contextmanager
def open_artifact(
    path: Path | str, experiment: str | None = None, max_bytes: int = fmt.MAX_BYTES
) -> Iterator[Artifact]:
    """Check an artifact and open it.

    Raises :class:`~cpbalance.errors.InputError`, naming the member where there is one, for
    anything that is not a sound artifact of this format, for one of another experiment than
    ``experiment``, and for one that inflates past ``max_bytes``.
    """
    path = Path(path)
    with zips.open_zip(path, max_bytes) as archive:
        descriptor = _descriptor(archive, path)
        if experiment is not None and descriptor["experiment"] != experiment:
            raise InputError(
                f"{path}: holds experiment {descriptor['experiment']!r}, but {experiment!r} is "
                f"configured; give its artifact, or set experiment to {descriptor['experiment']!r}"
            )
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        digests = _check_manifest(archive, path, sizes)
        for member in sorted(sizes):
            if member.endswith(".parquet"):
                with archive.open(member) as stream:
                    check_table(f"{path}: {member}", member, stream)
        yield Artifact(
            path=path,
            experiment=descriptor["experiment"],
            stages=tuple(descriptor["stages"]),
            config=_document(archive, path, fmt.CONFIG),
            run=_document(archive, path, fmt.RUN),
            environment=_document(archive, path, fmt.ENVIRONMENT),
            sizes=sizes,
            digests=digests,
            archive=archive,
        )


def adopt_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of the artifact that ``config`` draws from, if it is a file here.

    Figures are drawn for what the artifact holds, not for what is configured beside it. A URL is
    fetched later, so its configuration has to be given. Raises InputError as
    :func:`open_artifact`, before anything runs.
    """
    path = config.get("artifact")
    if path is not None and config.get("timings_from") is not None:
        raise InputError(
            "config: artifact and timings_from: nothing is computed from an artifact, so give "
            "artifact to draw from it, or timings_from to compute with its timings"
        )
    if not isinstance(path, str) or "://" in path:
        return dict(config)
    with open_artifact(path, config.get("experiment")) as artifact:
        return {**artifact.config, "artifact": path}


def extract_members(artifact: Artifact, folder: Path, members: Sequence[str] | None = None) -> None:
    """Write members (default all) below ``folder``, each whole or not at all.

    They are inflated and checked again beside ``folder`` first; files already there are replaced
    only after that. Raises InputError for a member that the artifact does not hold.
    """
    wanted = sorted(artifact.sizes) if members is None else list(members)
    for member in wanted:
        if member not in artifact.sizes:
            artifact.read(member)
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(
        tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent)
    )
    try:
        for member in wanted:
            digest = zips.copy_member(artifact.archive, member, staging / member)
            if digest != artifact.digests.get(member, digest):
                raise InputError(
                    f"{artifact.path}: member {member} changed while it was read; {zips.AGAIN}"
                )
        for member in wanted:
            (folder / member).parent.mkdir(parents=True, exist_ok=True)
            (staging / member).replace(folder / member)
    finally:
        shutil.rmtree(staging)


def _document(archive: zipfile.ZipFile, path: Path, name: str) -> dict[str, Any]:
    """One of the JSON documents, as an object."""
    try:
        value = json.loads(_text(archive, path, name))
    except ValueError as error:
        raise InputError(f"{path}: {name} is not JSON ({error}); {zips.AGAIN}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: {name} is not a JSON object; {zips.AGAIN}")
    return value


def _text(archive: zipfile.ZipFile, path: Path, name: str) -> str:
    try:
        size = archive.getinfo(name).file_size
    except KeyError as error:
        raise InputError(
            f"{path}: holds no {name}; not an artifact made by 'cpbalance artifact export'"
        ) from error
    if size > fmt.MAX_DOCUMENT_BYTES:
        raise InputError(
            f"{path}: {name} inflates to {size} bytes, over the limit of {fmt.MAX_DOCUMENT_BYTES}"
        )
    try:
        return b"".join(zips.member_chunks(archive, name)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {name} is not UTF-8; {zips.AGAIN}") from error


def _descriptor(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    """The descriptor, of this format and a version that this code reads."""
    descriptor = _document(archive, path, fmt.DESCRIPTOR)
    version = descriptor.get("version")
    if descriptor.get("format") != fmt.FORMAT or type(version) is not int or version < 1:
        raise InputError(
            f"{path}: {fmt.DESCRIPTOR} names format {descriptor.get('format')!r} version "
            f"{version!r}, but {fmt.FORMAT!r} version {fmt.VERSION} is needed"
        )
    if version > fmt.VERSION:
        raise InputError(
            f"{path}: has format version {version}, but this cpbalance reads up to {fmt.VERSION}; "
            f"update cpbalance"
        )
    stages = descriptor.get("stages")
    if not isinstance(descriptor.get("experiment"), str) or not (
        isinstance(stages, list) and all(stage in fmt.STAGES for stage in stages)
    ):
        raise InputError(
            f"{path}: {fmt.DESCRIPTOR} lacks its experiment or its stages; {zips.AGAIN}"
        )
    return descriptor


def _check_manifest(
    archive: zipfile.ZipFile, path: Path, sizes: Mapping[str, int]
) -> dict[str, str]:
    """Manifest and zip hold the same members with the same content."""
    digests = fmt.parse_manifest(_text(archive, path, fmt.MANIFEST), str(path))
    for member in sorted(digests.keys() - sizes.keys()):
        raise InputError(f"{path}: lacks {member}, which the manifest lists; {zips.AGAIN}")
    for member in sorted(sizes.keys() - digests.keys() - {fmt.MANIFEST}):
        raise InputError(
            f"{path}: holds {member}, which the manifest does not list; do not trust this file"
        )
    for member in sorted(digests):
        if member not in fmt.DOCUMENTS and fmt.stage_of(member) not in fmt.STAGES:
            raise InputError(
                f"{path}: member {member} is in no stage of format {fmt.VERSION} "
                f"({', '.join(fmt.STAGES)}); do not trust this file"
            )
        found = zips.member_digest(archive, member)
        if found != digests[member]:
            raise InputError(
                f"{path}: member {member} has SHA-256 {found[:12]}…, but the manifest says "
                f"{digests[member][:12]}…: it was changed; {zips.AGAIN}"
            )
    return digests
