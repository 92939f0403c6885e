"""JSON objects given on the command line."""

import json
from typing import Any

from cpbalance.errors import InputError


def json_object(option: str, text: str) -> dict[str, Any]:
    """The object in ``text``; raises :class:`~cpbalance.errors.InputError` for anything else."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InputError(f"{option} is not JSON ({error}): {text[:80]}") from None
    if not isinstance(value, dict):
        raise InputError(f"{option} is not a JSON object: {text[:80]}; give a JSON object")
    return value
