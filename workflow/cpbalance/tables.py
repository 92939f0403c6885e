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


LENGTHS = Schema("lengths", 1, {"step": (pa.int32(), "1"), "num_tokens": (pa.int64(), "tokens")})
PACKS = Schema(
    "packs",
    1,
    {
        "step": (pa.int32(), "1"),
        "pack": (pa.int32(), "1"),
        "segment_tokens": (pa.int32(), "tokens"),
    },
)
COSTS = Schema(
    "costs",
    1,
    {
        "step": (pa.int32(), "1"),
        "pack": (pa.int32(), "1"),
        "attention_pairs": (pa.int64(), "pairs of one head"),
        "cost": (pa.float64(), "given in provenance: cost_unit"),
    },
)
TIMINGS = Schema(
    "timings",
    1,
    {
        "step": (pa.int32(), "1"),
        "cp_size": (pa.int32(), "1"),
        "pack": (pa.int32(), "1"),
        "direction": (pa.string(), "forward or backward"),
        "kind": (pa.string(), "pack, sentinel or warmup"),
        "pass": (pa.int32(), "1, from 0"),
        "order": (pa.int32(), "1, from 0 in each run"),
        "seconds": (pa.float64(), "s, of the clock given in provenance"),
        "throttled": (pa.bool_(), "left out of medians"),
        "num_tokens": (pa.int64(), "tokens"),
        "num_segments": (pa.int32(), "1"),
        "q_heads": (pa.int32(), "query heads timed"),
        "kv_heads": (pa.int32(), "key-value heads timed"),
        "rank_q_heads": (pa.int32(), "query heads of a rank"),
        "rank_kv_heads": (pa.int32(), "key-value heads of a rank"),
        "clock_mhz": (pa.float32(), "MHz"),
        "power_w": (pa.float32(), "W"),
        "temperature_c": (pa.float32(), "degrees Celsius"),
    },
)
CALIBRATION_FIT = Schema(
    "calibration_fit",
    1,
    {
        "kernel": (pa.string(), "name"),
        "attention": (pa.string(), "name"),
        "lengths": (pa.string(), "name of lengths"),
        "direction": (pa.string(), "forward or backward"),
        "cp_size": (pa.int32(), "1"),
        "step": (pa.int32(), "1"),
        "pack": (pa.int32(), "1"),
        "q_heads": (pa.int32(), "query heads timed"),
        "num_tokens": (pa.int64(), "tokens"),
        "num_segments": (pa.int32(), "1"),
        "samples": (pa.int32(), "1"),
        "measured": (pa.float64(), "s, median"),
        "low": (pa.float64(), "s, end of the median's 95% interval"),
        "high": (pa.float64(), "s, end of the median's 95% interval"),
        "predicted": (pa.float64(), "s"),
        "held_out_error": (pa.float64(), "1, predicted over measured less 1, without this pack"),
        "quadratic_error": (pa.float64(), "1, the same of the quadratic model"),
    },
)

CALIBRATION = Schema(
    "calibration",
    1,
    {
        "kernel": (pa.string(), "name"),
        "attention": (pa.string(), "name"),
        "lengths": (pa.string(), "name"),
        "direction": (pa.string(), "forward or backward"),
        "cp_size": (pa.int32(), "1"),
        "steps": (pa.int32(), "1"),
        "packs": (pa.int32(), "1"),
        "measured_imbalance": (pa.float64(), "1"),
        "predicted_imbalance": (pa.float64(), "1"),
        "relative_difference": (pa.float64(), "1, measured over predicted less 1"),
        "measured_mean": (pa.float64(), "s, a pack at the heads timed"),
        "predicted_mean": (pa.float64(), "s, a pack at the heads timed"),
        "median_error": (pa.float64(), "1, of packs held out"),
        "worst_error": (pa.float64(), "1, of packs held out"),
        "quadratic_median_error": (pa.float64(), "1, of packs held out, pairs alone"),
    },
)
_SERIES = {
    "lengths": (pa.string(), "name"),
    "packing": (pa.string(), "name"),
    "attention": (pa.string(), "name"),
    "cost": (pa.string(), "name"),
    "source": (pa.string(), "name"),
}
METRICS = Schema(
    "metrics",
    1,
    {
        **_SERIES,
        "cp_size": (pa.int32(), "1"),
        "metric": (pa.string(), "name"),
        "value": (pa.float64(), "that of the cost, its square for variance, else 1"),
        "low": (pa.float64(), "as value"),
        "high": (pa.float64(), "as value"),
        "steps": (pa.int64(), "1"),
    },
)
COMPARISON = Schema(
    "comparison",
    1,
    {
        **_SERIES,
        "cp_size": (pa.int32(), "1"),
        "metric": (pa.string(), "name"),
        "value": (pa.float64(), "as in metrics"),
        "standard_error": (pa.float64(), "as value"),
        "reference": (pa.string(), "name"),
        "reference_value": (pa.float64(), "as value"),
        "reference_standard_error": (pa.float64(), "as value"),
        "relative_difference": (pa.float64(), "1"),
        "z": (pa.float64(), "1"),
    },
)
SLOPES = Schema(
    "slopes",
    1,
    {
        **_SERIES,
        "metric": (pa.string(), "name"),
        "slope": (pa.float64(), "1"),
        "low": (pa.float64(), "1"),
        "high": (pa.float64(), "1"),
        "expected": (pa.float64(), "1"),
        "degrees": (pa.int32(), "1"),
        "steps": (pa.int64(), "1"),
    },
)
RANK_COSTS = Schema(
    "rank_costs",
    1,
    {
        **_SERIES,
        "cp_size": (pa.int32(), "1"),
        "step": (pa.int32(), "1"),
        "pack": (pa.int32(), "1"),
        "relative_cost": (pa.float64(), "mean cost of this CP degree"),
    },
)
LENGTH_CURVES = Schema(
    "length_curves",
    1,
    {
        "lengths": (pa.string(), "name"),
        "num_tokens": (pa.int64(), "tokens"),
        "documents_at_least": (pa.float64(), "1"),
        "tokens_at_least": (pa.float64(), "1"),
    },
)
ARTIFACT_SETTINGS = Schema(
    "artifact_settings",
    1,
    {
        "kind": (pa.string(), "run, config, machine, software or timing"),
        "item": (pa.string(), "name"),
        "a": (pa.string(), "text, in the first artifact"),
        "b": (pa.string(), "text, in the second artifact"),
    },
)
_SIDES = {
    f"{name}_{side}": (pa.float64(), "as value in metrics")
    for side in "ab"
    for name in ("value", "low", "high")
}
ARTIFACT_METRICS = Schema(
    "artifact_metrics",
    1,
    {
        **{key: value for key, value in _SERIES.items() if key != "source"},
        "cp_size": (pa.int32(), "1"),
        "metric": (pa.string(), "name"),
        "artifact_a": (pa.string(), "name"),
        "artifact_b": (pa.string(), "name"),
        "source_a": (pa.string(), "name"),
        "source_b": (pa.string(), "name"),
        **_SIDES,
        "ratio": (pa.float64(), "1, b over a"),
        "overlap": (pa.bool_(), "whether the intervals overlap"),
    },
)
_SERIES_OF_THEORY = {name: column for name, column in _SERIES.items() if name != "source"}
THEORY = Schema(
    "theory",
    1,
    {
        **_SERIES_OF_THEORY,
        "cp_size": (pa.int32(), "1"),
        "groups": (pa.int32(), "1"),
        "level": (pa.string(), "iid, renewal, moments or distribution"),
        "mean": (pa.float64(), "that of the cost"),
        "variance": (pa.float64(), "square of the cost's"),
        "cv": (pa.float64(), "1"),
        "skewness": (pa.float64(), "1"),
        "expected_max": (pa.float64(), "that of the cost"),
        "expected_min": (pa.float64(), "that of the cost"),
        "imbalance": (pa.float64(), "1"),
        "max_over_mean": (pa.float64(), "1"),
        "max_over_min": (pa.float64(), "1"),
        "waiting_share": (pa.float64(), "1"),
        "neighbour_correlation": (pa.float64(), "1"),
        "relative_error": (pa.float64(), "1, numerical"),
        "note": (pa.string(), "text"),
    },
)
THEORY_DENSITY = Schema(
    "theory_density",
    1,
    {
        **_SERIES_OF_THEORY,
        "cp_size": (pa.int32(), "1"),
        "relative_cost": (pa.float64(), "mean cost of this CP degree"),
        "density": (pa.float64(), "per mean cost"),
    },
)
VALIDATION = Schema(
    "validation",
    1,
    {
        **_SERIES_OF_THEORY,
        "cp_size": (pa.int32(), "1"),
        "level": (pa.string(), "iid, renewal, moments or distribution"),
        "metric": (pa.string(), "name"),
        "predicted": (pa.float64(), "as value in metrics"),
        "simulated": (pa.float64(), "as value in metrics"),
        "standard_error": (pa.float64(), "as value in metrics"),
        "relative_error": (pa.float64(), "1, predicted over simulated less 1"),
        "z": (pa.float64(), "1"),
    },
)
NEIGHBOURS = Schema(
    "neighbours",
    1,
    {
        **_SERIES_OF_THEORY,
        "cp_size": (pa.int32(), "1"),
        "quantity": (pa.string(), "correlation, shuffled_correlation or shuffled_imbalance"),
        "simulated": (pa.float64(), "1"),
        "standard_error": (pa.float64(), "1"),
        "predicted": (pa.float64(), "1"),
    },
)
EXPONENTIAL_NORMAL = Schema(
    "exponential_normal",
    1,
    {
        "normal_cv": (pa.float64(), "1"),
        "pack": (pa.string(), "documents (a fixed number of them) or tokens (a fixed budget)"),
        "exponential": (pa.float64(), "variance per document, mean length⁴"),
        "normal": (pa.float64(), "variance per document, mean length⁴"),
        "ratio": (pa.float64(), "1"),
        "monte_carlo": (pa.float64(), "1, the ratio from simulated packs"),
        "standard_error": (pa.float64(), "1"),
        "z": (pa.float64(), "1"),
    },
)
SCHEMAS = {
    schema.name: schema
    for schema in (
        LENGTHS,
        PACKS,
        COSTS,
        TIMINGS,
        CALIBRATION_FIT,
        CALIBRATION,
        METRICS,
        COMPARISON,
        SLOPES,
        RANK_COSTS,
        LENGTH_CURVES,
        ARTIFACT_SETTINGS,
        ARTIFACT_METRICS,
        THEORY,
        THEORY_DENSITY,
        VALIDATION,
        NEIGHBOURS,
        EXPONENTIAL_NORMAL,
    )
}


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
