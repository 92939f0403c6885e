"""Unpack a wheel into a folder as an installer would note it (PEP 610), and print its SHA-256."""

import hashlib
import json
import sys
import zipfile
from pathlib import Path


def unpack(wheel: Path, site: Path) -> str:
    """Put the wheel's files into ``site`` with a note of the wheel's hash; returns the hash."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        info = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
    note = {"url": wheel.name, "archive_info": {"hashes": {"sha256": digest}}}
    (site / info).with_name("direct_url.json").write_text(json.dumps(note), encoding="utf-8")
    return digest


if __name__ == "__main__":
    print(unpack(Path(sys.argv[1]), Path(sys.argv[2])), Path(sys.argv[1]).name)
