"""``cpbalance merge``: put the shards of one stage file together."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpbalance.errors import InputError
from cpbalance.table_schemas import SCHEMAS
from cpbalance.tables import Schema, iter_row_groups, read_provenance, table_writer

HELP = "put the shards of one stage file together"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    parser.add_argument("--schema", required=True, choices=sorted(SCHEMAS), help="kind of file")
    parser.add_argument(
        "--shards", type=Path, nargs="+", required=True, help="files of all shards, in order"
    )
    parser.add_argument("--output", type=Path, required=True)


def run(args: argparse.Namespace) -> None:
    """Write all rows of all shards, row group by row group."""
    schema = SCHEMAS[args.schema]
    following = 0
    with table_writer(args.output, schema, merged_provenance(args.shards, schema)) as writer:
        for path in args.shards:
            for group in iter_row_groups(path, schema):
                steps = group["step"].to_numpy()
                if len(steps) and steps[0] != following:
                    raise InputError(
                        f"{path}: goes on with step {steps[0]}, but step {following} is next; give "
                        f"every shard once, in order"
                    )
                following = int(steps[-1]) + 1 if len(steps) else following
                writer.write({name: group[name].combine_chunks() for name in group.column_names})


def merged_provenance(paths: Sequence[Path], schema: Schema) -> dict[str, Any]:
    """Provenance common to all shards; ``runs``, where there are any, of all of them in order.

    Raises :class:`~cpbalance.errors.InputError` where the shards were not made alike.
    """
    found = [read_provenance(path, schema) for path in paths]
    runs = [run for provenance in found for run in provenance.pop("runs", [])]
    for path, provenance in zip(paths, found, strict=True):
        if provenance != found[0]:
            different = sorted(k for k in provenance if provenance[k] != found[0].get(k))
            raise InputError(
                f"{path}: was made otherwise than {paths[0]} ({', '.join(different)}); make all "
                f"shards with the same settings"
            )
    return found[0] | ({"runs": runs} if runs else {})
