"""Stage files: Parquet with a named, versioned schema, units and provenance.

Every file carries in its schema metadata ``cpbalance.schema`` (name/version), ``cpbalance.units``
(JSON, column to unit) and ``cpbalance.provenance`` (JSON, how it was made). A reader refuses a
file whose schema name, version or columns it does not know. Files appear whole or not at all:
they are written beside their place and moved there at the end.
"""

import glob
import hashlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from cpbalance.errors import InputError
from cpbalance.shards import WHOLE, Shard

SCHEMA_KEY = b"cpbalance.schema"
UNITS_KEY = b"cpbalance.units"
PROVENANCE_KEY = b"cpbalance.provenance"

# Steps that one row group holds: the unit in which stages read, compute and write, so that memory
# does not grow with the number of steps. Shards are cut at its multiples, so it is part of the
# format: the same bytes come out whatever the number of shards.
STEPS_PER_ROW_GROUP = 50


@dataclass(frozen=True)
class Schema:
    """Columns of one kind of file: ``{column: (Arrow type, unit)}``."""

    name: str
    version: int
    columns: Mapping[str, tuple[pa.DataType, str]]

    @property
    def label(self) -> str:
        """Name and version as they stand in the file."""
        return f"{self.name}/{self.version}"

    def arrow(self, provenance: Mapping[str, Any]) -> pa.Schema:
        """The Arrow schema, with units and provenance as metadata."""
        return pa.schema(
            [(name, dtype) for name, (dtype, _) in self.columns.items()],
            metadata={
                SCHEMA_KEY: self.label.encode(),
                UNITS_KEY: canonical_json({k: u for k, (_, u) in self.columns.items()}).encode(),
                PROVENANCE_KEY: canonical_json(provenance).encode(),
            },
        )


def canonical_json(value: Any) -> str:
    """One text per value: sorted keys, no spaces, NaN refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def file_digest(path: Path | str) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Yield a name beside ``path`` to write to; it becomes ``path`` only if the block succeeds."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    partial = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Delete what a writer of ``path`` on this host left behind when it was killed."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.{socket.gethostname()}.*.partial"):
        process = leftover.name.split(".")[-2]
        if not Path("/proc", process).exists():
            leftover.unlink(missing_ok=True)


@contextmanager
def table_writer(
    path: Path | str, schema: Schema, provenance: Mapping[str, Any]
) -> Iterator["TableWriter"]:
    """Write a stage file row group by row group; it appears at ``path`` when all went well."""
    arrow_schema = schema.arrow(provenance)
    with (
        replacing(path) as partial,
        pq.ParquetWriter(partial, arrow_schema, compression="zstd") as writer,
    ):
        yield TableWriter(writer, arrow_schema)


class TableWriter:
    """Takes columns in schema order, one row group a call."""

    def __init__(self, writer: pq.ParquetWriter, arrow_schema: pa.Schema) -> None:
        self._writer, self._schema = writer, arrow_schema

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append one row group; ``columns`` maps every schema column to an array."""
        arrays = [_column(columns[field.name], field.type) for field in self._schema]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))


def _column(values: Any, dtype: pa.DataType) -> pa.Array:
    return values.cast(dtype) if isinstance(values, pa.Array) else pa.array(values, type=dtype)


def write_table(
    path: Path | str, schema: Schema, columns: Mapping[str, Any], provenance: Mapping[str, Any]
) -> None:
    """Write a whole stage file as one row group."""
    with table_writer(path, schema, provenance) as writer:
        writer.write(columns)


def write_frame(
    path: Path | str, schema: Schema, frame: Any, provenance: Mapping[str, Any]
) -> None:
    """Write a pandas frame as a table: Parquet at ``path``, and CSV of the same name beside it."""
    columns = {name: frame[name].to_numpy() for name in schema.columns}
    arrays = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    write_table(path, schema, arrays, provenance)
    with replacing(Path(path).with_suffix(".csv")) as partial:
        frame[list(schema.columns)].to_csv(partial, index=False, lineterminator="\n")


def open_table(path: Path | str, schema: Schema, source: IO[bytes] | None = None) -> pq.ParquetFile:
    """Open a stage file for reading; with ``source``, read that and let ``path`` only name it.

    Raises :class:`~cpbalance.errors.InputError` if it is missing, is not Parquet, or holds another
    schema, version or set of columns.
    """
    path = Path(path)
    if source is None and not path.is_file():
        raise InputError(f"{path}: no such file; make it with the stage that writes {schema.name}")
    try:
        file = pq.ParquetFile(source or path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"{path}: not a readable Parquet file ({str(error).splitlines()[0]}); "
            f"delete it and make it again"
        ) from error
    found = (file.schema_arrow.metadata or {}).get(SCHEMA_KEY, b"none").decode()
    if found != schema.label:
        raise InputError(
            f"{path}: holds schema {found}, but {schema.label} is needed; make it again with this "
            f"version of cpbalance"
        )
    expected = schema.arrow({})
    if not file.schema_arrow.equals(expected, check_metadata=False):
        raise InputError(
            f"{path}: has columns {file.schema_arrow.names}, but {schema.label} has "
            f"{expected.names}; make it again"
        )
    return file


def read_table(path: Path | str, schema: Schema) -> pa.Table:
    """Read a whole stage file; errors as in :func:`open_table`."""
    with open_table(path, schema) as file:
        return file.read()


def iter_row_groups(path: Path | str, schema: Schema, shard: Shard = WHOLE) -> Iterator[pa.Table]:
    """Read a stage file or a shard of it, a row group at a time; errors as :func:`open_table`."""
    with open_table(path, schema) as file:
        for index in shard.share(file.num_row_groups):
            yield file.read_row_group(index)


def read_provenance(path: Path | str, schema: Schema) -> dict[str, Any]:
    """Provenance of a stage file; errors as in :func:`open_table`."""
    with open_table(path, schema) as file:
        return json.loads(file.schema_arrow.metadata[PROVENANCE_KEY])
