"""Document lengths from a file: Parquet, Feather/Arrow, CSV, ``.npy``, or text, one a line.

The name's ending says what the file is; ``.csv`` and ``.txt`` may be compressed (``.gz``,
``.zst``). Whatever is not a whole number of tokens is refused; documents of no tokens are left
out and counted.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cpbalance.errors import InputError

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def read_lengths(path: Path | str, column: str | None = None) -> tuple[NDArray[np.int64], int]:
    """Lengths of a file (int64, each at least 1) and how many documents of no tokens it had.

    Raises :class:`~cpbalance.errors.InputError` for a missing, empty or unreadable file, a missing
    column, and any entry that is not a whole number of tokens, 0 or more.
    """
    path = Path(path)
    suffixes = path.suffixes
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    ending = suffixes[-2] if compression and len(suffixes) > 1 else path.suffix
    reader = _READERS.get(ending)
    if reader is None or (compression and ending not in (".csv", ".txt")):
        raise InputError(
            f"{path}: ending {''.join(suffixes[-2:])!r} is not known; use "
            f"{', '.join(_READERS)}, with .gz or .zst after .csv and .txt"
        )
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the path of a file of document lengths")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; it must hold document lengths")
    try:
        values = reader(path, column, compression)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
        raise InputError(f"{path}: not a readable {ending} file: {reason}") from error
    return _whole_lengths(values, path)


def _pick(table: pa.Table, column: str | None, path: Path) -> pa.ChunkedArray:
    names = table.column_names
    if column is None:
        if len(names) != 1:
            raise InputError(f"{path}: has columns {names}; name one of them with the key column")
        return table.column(0)
    if column not in names:
        raise InputError(f"{path}: no column {column!r}; it has {names}")
    return table[column]


def _read_parquet(path: Path, column: str | None, _: str | None) -> pa.ChunkedArray:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        _pick(schema.empty_table(), column, path)
        return _pick(file.read(columns=[column] if column else None), column, path)


def _read_feather(path: Path, column: str | None, _: str | None) -> pa.ChunkedArray:
    with pa.memory_map(str(path)) as source:
        return _pick(pyarrow.feather.read_table(source), column, path)


def _read_csv(path: Path, column: str | None, compression: str | None) -> pa.ChunkedArray:
    with pa.input_stream(str(path), compression=compression) as stream:
        return _pick(pyarrow.csv.read_csv(stream), column, path)


def _read_text(path: Path, column: str | None, compression: str | None) -> pa.ChunkedArray:
    _refuse_column(column, path)
    options = pyarrow.csv.ReadOptions(column_names=["num_tokens"])
    with pa.input_stream(str(path), compression=compression) as stream:
        return pyarrow.csv.read_csv(
            stream,
            read_options=options,
            parse_options=pyarrow.csv.ParseOptions(ignore_empty_lines=False),
        ).column(0)


def _read_npy(path: Path, column: str | None, _: str | None) -> pa.ChunkedArray:
    _refuse_column(column, path)
    array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray) or array.ndim != 1:
        shape = getattr(array, "shape", "several arrays")
        raise InputError(f"{path}: holds an array of shape {shape}; one dimension is needed")
    return pa.chunked_array([pa.array(array)])


def _refuse_column(column: str | None, path: Path) -> None:
    if column is not None:
        raise InputError(
            f"{path}: a {path.suffixes[0]} file has no columns; leave out column ({column!r})"
        )


_READERS: dict[str, Callable[[Path, str | None, str | None], pa.ChunkedArray]] = {
    ".parquet": _read_parquet,
    ".feather": _read_feather,
    ".arrow": _read_feather,
    ".csv": _read_csv,
    ".npy": _read_npy,
    ".txt": _read_text,
}


def _whole_lengths(values: pa.ChunkedArray, path: Path) -> tuple[NDArray[np.int64], int]:
    if len(values) == 0:
        raise InputError(f"{path}: holds no lengths; at least one is needed")
    dtype = values.type
    if pa.types.is_dictionary(dtype):
        values = pc.cast(values, dtype.value_type)
        dtype = values.type
    if values.null_count:
        row = int(np.flatnonzero(values.is_null().to_numpy())[0])
        raise InputError(f"{path}: entry {row + 1} is missing; give a whole number of tokens")
    if not (pa.types.is_integer(dtype) or pa.types.is_floating(dtype)):
        raise InputError(
            f"{path}: {_first_non_number(values)}; lengths must be whole numbers of tokens"
        )
    array = values.to_numpy()
    # NaN and infinities fail this too.
    bad = ~((array >= 0) & (array <= 2**53) & (np.floor(array) == array))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{path}: entry {row + 1} is {array[row]}; lengths must be whole numbers of tokens, "
            f"0 or more"
        )
    lengths = array.astype(np.int64)
    kept = lengths[lengths > 0]
    if not len(kept):
        raise InputError(f"{path}: all {len(lengths)} documents have no tokens")
    return kept, len(lengths) - len(kept)


def _first_non_number(values: pa.ChunkedArray) -> str:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return f"entries are of type {values.type}"
    for row, text in enumerate(values.to_pylist()):
        try:
            float(text)
        except ValueError:
            return f"entry {row + 1} is {text[:40]!r}"
    return "entries are text"
