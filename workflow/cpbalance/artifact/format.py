"""What an artifact is made of: its version, its fixed members, the stages and their schemas.

Reader and writer agree here and nowhere else.
"""

import re
from collections.abc import Mapping

from cpbalance.errors import InputError

FORMAT = "cpbalance-artifact"
VERSION = 1

DESCRIPTOR = "artifact.json"
CONFIG = "config.json"
RUN = "run.json"
ENVIRONMENT = "environment.json"
CRATE = "ro-crate-metadata.json"
MANIFEST = "manifest-sha256.txt"
DOCUMENTS = (DESCRIPTOR, CONFIG, RUN, ENVIRONMENT, CRATE, MANIFEST)

# Folder under results/{experiment}/ to what it holds. The first four are always worth their bytes;
# the others are large, can be computed again from config.json, and go in by choice.
STAGES: Mapping[str, str] = {
    "tables": "statistics that every figure is drawn from",
    "timings": "one row per measured kernel call",
    "calibration": "kernel cost models fitted to the timings",
    "lengths": "document lengths of every step",
    "packs": "segments of every pack",
    "costs": "cost of every pack",
}

# A hostile zip can claim any size; these bounds are far above any real run.
MAX_BYTES = 16 * 2**30
MAX_MEMBERS = 100_000
MAX_DOCUMENT_BYTES = 64 * 2**20

_PART = re.compile(r"[A-Za-z0-9_+=@,~-][A-Za-z0-9_.+=@,~:-]*")
_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")


def stage_of(member: str) -> str:
    """Stage folder of a member, or ``""`` for one of the fixed documents."""
    return "" if member in DOCUMENTS else member.partition("/")[0]


def name_fault(name: str) -> str | None:
    """Why ``name`` may not be a member of an artifact, None if it may.

    Allowed are relative paths of plain ASCII names, so that a name means the same file on every
    system.
    """
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
        return "an absolute path"
    parts = re.split(r"[/\\]", name)
    if ".." in parts:
        return "a path that climbs with '..'"
    if "\\" in name or not all(_PART.fullmatch(part) for part in parts):
        return "not a plain file name"
    return None


def manifest_text(digests: Mapping[str, str]) -> str:
    """The manifest, one line a member in the order of names, as ``sha256sum`` writes it."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))


def parse_manifest(text: str, where: str) -> dict[str, str]:
    """SHA-256 by member; raises :class:`~cpbalance.errors.InputError` naming ``where``."""
    digests: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in digests:
            fault = "is not '<sha256>  <member>'" if match is None else f"lists {match[2]} again"
            raise InputError(f"{where}: line {number} of {MANIFEST} {fault}; get the file again")
        digests[match[2]] = match[1]
    return digests
