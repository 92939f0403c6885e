"""Zip files that can be written the same way twice and read without trust.

Reading checks everything that can be known from the directory of the zip before a byte is
inflated: names, duplicates, links, encryption, methods, sizes. Inflating stops at the size that
was declared and checked, so a lying header cannot fill memory or disk.
"""

import hashlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cpbalance.artifact.format import MAX_MEMBERS, name_fault
from cpbalance.errors import InputError

CHUNK = 1 << 20
# The earliest time that a zip can hold.
FIXED_TIME = (1980, 1, 1, 0, 0, 0)
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    struct.error,
    RuntimeError,
    OSError,
    ValueError,
)
AGAIN = "get the file again"


def write_zip(target: Path, members: Mapping[str, bytes | Path]) -> None:
    """Write ``members`` (name to content, or to the file that holds it) in the order given."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, FIXED_TIME)
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            if isinstance(content, bytes):
                archive.writestr(info, content)
                continue
            info.file_size = content.stat().st_size
            with content.open("rb") as source, archive.open(info, "w") as sink:
                while chunk := source.read(CHUNK):
                    sink.write(chunk)


@contextmanager
def open_zip(path: Path, max_bytes: int) -> Iterator[zipfile.ZipFile]:
    """Open a zip whose directory is sound; nothing has been inflated yet.

    Raises :class:`~cpbalance.errors.InputError` for a missing or truncated file, and for any
    member that has no place in an artifact.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the path of an artifact (*.crate.zip)")
    try:
        archive = zipfile.ZipFile(path)
    except _DAMAGE as error:
        raise InputError(f"{path}: truncated, or not a zip ({_brief(error)}); {AGAIN}") from error
    with archive:
        _check_directory(path, archive.infolist(), max_bytes)
        yield archive


def _check_directory(path: Path, infos: list[zipfile.ZipInfo], max_bytes: int) -> None:
    """Refuse what a sound artifact never holds, from the zip's directory alone."""
    if len(infos) > MAX_MEMBERS:
        raise InputError(f"{path}: holds {len(infos)} members, over the limit of {MAX_MEMBERS}")
    seen: set[str] = set()
    total = 0
    for info in infos:
        fault = _member_fault(info)
        # Some systems do not tell cases apart: two such names would overwrite each other there.
        if fault is None and info.filename.casefold() in seen:
            fault = "in the zip twice"
        if fault is not None:
            raise InputError(f"{path}: member {info.filename!r} is {fault}; do not trust this file")
        seen.add(info.filename.casefold())
        total += info.file_size
        if total > max_bytes:
            raise InputError(
                f"{path}: inflates past the limit of {max_bytes} bytes at {info.filename!r}; "
                f"raise the limit (--limit-gib) only if you trust its source"
            )


def _member_fault(info: zipfile.ZipInfo) -> str | None:
    mode = info.external_attr >> 16
    if info.orig_filename != info.filename:
        return "not a plain file name"
    if fault := name_fault(info.filename):
        return fault
    if stat.S_ISLNK(mode):
        return "a link"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "not a regular file"
    if info.flag_bits & 0x1:
        return "encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"compressed by method {info.compress_type}, neither stored nor deflated"
    return None


def member_chunks(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """Content of a member, piece by piece; damage is an InputError that names the member."""
    try:
        with archive.open(name) as stream:
            while chunk := stream.read(CHUNK):
                yield chunk
    except _DAMAGE as error:
        raise InputError(
            f"{archive.filename}: member {name} is damaged ({_brief(error)}); {AGAIN}"
        ) from error


def member_digest(archive: zipfile.ZipFile, name: str) -> str:
    """SHA-256 of a member, in hexadecimal."""
    digest = hashlib.sha256()
    for chunk in member_chunks(archive, name):
        digest.update(chunk)
    return digest.hexdigest()


def copy_member(archive: zipfile.ZipFile, name: str, target: Path) -> str:
    """Inflate a member to the new file ``target``; its SHA-256, in hexadecimal."""
    digest = hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as sink:
        for chunk in member_chunks(archive, name):
            digest.update(chunk)
            sink.write(chunk)
    return digest.hexdigest()


def _brief(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
