"""RO-Crate metadata of an artifact: what each file is, and which command made it from what.

Profile: Process Run Crate 0.5 (https://w3id.org/ro/wfrun/process/0.5) on RO-Crate 1.1. One action
a stage, whose instrument is cpbalance. There is no endTime: the same inputs must give the same
bytes.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from cpbalance.artifact import format as fmt

PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
MEDIA_TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".json": "application/json",
    ".txt": "text/plain",
}
DOCUMENT_NAMES = {
    fmt.DESCRIPTOR: "Format and version of this artifact",
    fmt.CONFIG: "Resolved configuration",
    fmt.RUN: "Command, seed, revision and code digests of the run",
    fmt.ENVIRONMENT: "Machine and software versions",
    fmt.MANIFEST: "SHA-256 of every other file",
}


def crate_metadata(
    experiment: str, members: Sequence[str], run: Mapping[str, Any], license_id: str
) -> bytes:
    """The text of ``ro-crate-metadata.json`` for the given members.

    ``run`` is the content of ``run.json``; ``license_id`` an SPDX identifier.
    """
    # Only writing needs rocrate: a machine that reads artifacts does without.
    from rocrate.model import ContextEntity
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version="1.1")

    def entity(identifier: str, kind: str, **properties: Any) -> Any:
        return crate.add(ContextEntity(crate, identifier, {"@type": kind, **properties}))

    root = crate.root_dataset
    root["name"] = f"cpbalance experiment {experiment}"
    root["description"] = (
        "Statistics, kernel timings and calibrations from which every figure of the experiment "
        "is drawn, with the configuration and the software that made them."
    )
    root["datePublished"] = run["date"]
    license_url = f"https://spdx.org/licenses/{license_id}"
    root["license"] = entity(license_url, "CreativeWork", name=license_id)
    root["conformsTo"] = entity(PROFILE, "CreativeWork", name="Process Run Crate", version="0.5")
    tool = entity("#cpbalance", "SoftwareApplication", name="cpbalance", version=run["version"])
    files = {}
    with warnings.catch_warnings():
        # rocrate warns of files without a source; they are written beside it, not by it.
        warnings.simplefilter("ignore")
        for member in members:
            files[member] = crate.add_file(None, member, properties=_file_properties(member))
    for stage in dict.fromkeys(fmt.stage_of(member) for member in members if "/" in member):
        action = entity(f"#{stage}", "CreateAction", name=stage, description=fmt.STAGES[stage])
        action["instrument"] = tool
        action["object"] = files[fmt.CONFIG]
        action["result"] = _single([f for m, f in files.items() if fmt.stage_of(m) == stage])
        root.append_to("mentions", action)
    return (json.dumps(crate.metadata.generate(), indent=1, sort_keys=True) + "\n").encode()


def _single(entities: list[Any]) -> Any:
    """RO-Crate 1.1 wants one value bare, not as a list of one."""
    return entities[0] if len(entities) == 1 else entities


def _file_properties(member: str) -> dict[str, str]:
    path = PurePosixPath(member)
    name = DOCUMENT_NAMES.get(member) or f"{path.stem}: {fmt.STAGES[fmt.stage_of(member)]}"
    return {"name": name, "encodingFormat": MEDIA_TYPES[path.suffix]}
