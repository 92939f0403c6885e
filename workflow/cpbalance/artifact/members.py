"""Which schema each Parquet member of an artifact must have.

Stage files are held to the schemas in :mod:`cpbalance.tables`; an unknown table is refused, since
no figure could read it.
"""

from typing import IO

from cpbalance import tables
from cpbalance.artifact.format import stage_of
from cpbalance.errors import InputError

STAGE_SCHEMAS = {"lengths": tables.LENGTHS, "packs": tables.PACKS, "costs": tables.COSTS}
TABLE_SCHEMAS: dict[str, tables.Schema] = {}


def schema_of(member: str) -> tables.Schema | None:
    """Schema of a member, None if it is no Parquet file.

    Raises :class:`~cpbalance.errors.InputError` for a Parquet file that no stage writes.
    """
    if not member.endswith(".parquet"):
        return None
    stage = stage_of(member)
    name = member.removeprefix("tables/").removesuffix(".parquet")
    schema = TABLE_SCHEMAS.get(name) if stage == "tables" else STAGE_SCHEMAS.get(stage)
    if schema is None:
        raise InputError(
            f"member {member} is a table that this cpbalance does not know; update cpbalance"
        )
    return schema


def check_table(where: str, member: str, stream: IO[bytes]) -> None:
    """Raise InputError, opening with ``where``, unless the member has its schema."""
    schema = schema_of(member)
    if schema is not None:
        tables.open_table(where, schema, stream).close()
