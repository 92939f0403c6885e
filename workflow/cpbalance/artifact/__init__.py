"""One file that holds a finished run: what its figures need, and how it was made.

An artifact is a zip that is also an RO-Crate (Process Run Crate 0.5 on RO-Crate 1.1,
https://w3id.org/ro/wfrun/process/0.5):

- ``artifact.json``: format, format version, experiment, stages inside;
- ``config.json``: the resolved configuration; ``run.json``: command, seed, revision, code digests;
  ``environment.json``: machine and software versions;
- ``tables/``, ``timings/``, ``calibration/`` and, by choice, the large stages, at the paths they
  have under ``results/{experiment}/``;
- ``ro-crate-metadata.json``, and ``manifest-sha256.txt`` (as ``sha256sum`` writes it) over all of
  the above.

The same inputs give the same bytes: fixed order, times and modes, members stored uncompressed
(the tables are compressed inside, and zlib's output changes between its versions).
"""

from cpbalance.artifact.format import STAGES, VERSION
from cpbalance.artifact.reader import Artifact, adopt_config, extract_members, open_artifact
from cpbalance.artifact.writer import write_artifact

__all__ = [
    "STAGES",
    "VERSION",
    "Artifact",
    "adopt_config",
    "extract_members",
    "open_artifact",
    "write_artifact",
]
