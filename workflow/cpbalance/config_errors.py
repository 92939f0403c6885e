"""Parsing with pydantic: the first fault becomes one line that names key, value and remedy."""

import difflib
import math
from typing import Any

from pydantic import BaseModel, ValidationError

from cpbalance.errors import InputError


def parse_model(model: type[BaseModel], values: Any, what: str) -> Any:
    """Parse ``values`` as ``model``; raises :class:`InputError` about the first fault."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InputError(_first_fault(error, model, values, what)) from None


def _first_fault(error: ValidationError, model: type[BaseModel], values: Any, what: str) -> str:
    faults = error.errors(include_url=False)
    # An unknown key explains what it leaves missing, so it is named first.
    fault = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
    key = ".".join(_user_path(values, fault["loc"])) or what
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        valid = _valid_keys(model, fault["loc"])
        close = difflib.get_close_matches(str(fault["loc"][-1]), valid, 1)
        hint = f"did you mean {close[0]}?" if close else f"valid: {', '.join(valid)}"
        return f"{what}: unknown key {key}; {hint}"
    given = fault["input"]
    shown = "" if isinstance(given, dict | BaseModel) else f" is {_short(given)}"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    where = "" if key == what else f"{key}{shown}: "
    return f"{what}: {where}{message}{more}"


def _user_path(values: Any, location: tuple[int | str, ...]) -> list[str]:
    """The location as the user wrote it: pydantic names the chosen union member too."""
    path: list[str] = []
    for position, part in enumerate(location):
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            if position < len(location) - 1:
                continue
        path.append(str(part))
    return path


def _short(value: Any) -> str:
    text = "missing" if value is None else repr(value)
    if isinstance(value, float) and not math.isfinite(value):
        text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _valid_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Keys valid beside the unknown one at ``location``."""
    schema = model.model_json_schema()

    def resolve(node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        return node

    node = resolve(schema)
    for part in location[:-1]:
        if "discriminator" in node:
            node = resolve({"$ref": node["discriminator"]["mapping"][str(part)]})
        elif "properties" in node and part in node["properties"]:
            node = resolve(node["properties"][part])
        else:
            keyed = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
            node = resolve(next(filter(None, keyed), None) or node.get("items") or {})
    return sorted(node.get("properties", {}))
