"""``cpbalance schema``: the JSON schema of the configuration, written from its models."""

import argparse
import json
from pathlib import Path

from cpbalance.config import Config
from cpbalance.tables import replacing

HELP = "write the JSON schema of the configuration"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("--output", type=Path, required=True)


def schema_text() -> str:
    """The schema as it stands in ``workflow/schemas/config.schema.json``."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema |= Config.model_json_schema()
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def run(args: argparse.Namespace) -> None:
    """Write the schema."""
    with replacing(args.output) as partial:
        partial.write_text(schema_text(), encoding="utf-8")
