"""Which schema each Parquet member of an artifact must have.

A table is named after its schema, and the files of any other stage have the schema of that name in
:mod:`cpbalance.tables`. An unknown table is refused, since no figure could read it.
"""

from pathlib import PurePosixPath
from typing import IO

from cpbalance import tables
from cpbalance.artifact.format import stage_of
from cpbalance.errors import InputError
from cpbalance.table_schemas import SCHEMAS

# Stages whose Parquet files have a schema of another name.
FILES_OF = {"calibration": "calibration_fit"}


def check_table(where: str, member: str, stream: IO[bytes]) -> None:
    """Raise InputError, naming ``where``, for a table without its schema."""
    stage = stage_of(member)
    name = PurePosixPath(member).stem if stage == "tables" else FILES_OF.get(stage, stage)
    if name not in SCHEMAS:
        raise InputError(f"{where}: a table that this cpbalance does not know; update cpbalance")
    tables.open_table(where, SCHEMAS[name], stream).close()
