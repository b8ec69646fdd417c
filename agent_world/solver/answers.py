"""Brings what was found into the types of the answer schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent_world.environments.model import Json

_PLACES = {"one": 1, "two": 2, "three": 3, "1": 1, "2": 2, "3": 3, "no": 0, "zero": 0}


def fitted(value: Json, schema: Mapping[str, Json]) -> Json:
    """`value` as the schema of one field wants it; None when it cannot be."""
    kinds = schema.get("type", "string")
    kind = kinds if isinstance(kinds, str) else next((one for one in kinds if one != "null"), "string")
    if kind == "array":
        values = value if isinstance(value, list) else [] if value is None else [value]
        return [one for one in (fitted(item, schema.get("items", {})) for item in values) if one is not None]
    if isinstance(value, list):
        value = value[0] if value else None
    if value is None:
        return None
    if kind == "boolean":
        return value if isinstance(value, bool) else str(value).lower() in ("true", "yes", "1")
    if kind in ("integer", "number"):
        return _number(value, kind, str(schema.get("description", "")))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else str(value)


def empty(schema: Mapping[str, Json]) -> Json:
    """A value of the right type for a field that nothing was found for."""
    kinds = schema.get("type", "string")
    kind = kinds if isinstance(kinds, str) else next((one for one in kinds if one != "null"), "string")
    if schema.get("enum"):
        return schema["enum"][0]
    return {"integer": 0, "number": 0.0, "boolean": False, "array": []}.get(kind, "")


def text_of(values: Sequence[Json]) -> str:
    """Several values in one text."""
    return ", ".join(str(value) for value in values)


def _number(value: Json, kind: str, description: str) -> Json:
    if isinstance(value, str):
        found = re.search(r"-?\d+(?:\.\d+)?", value.replace(",", ""))
        if found is None:
            return None
        value = float(found.group())
    if isinstance(value, bool):
        return int(value)
    rounded = re.search(r"round\w* (?:off )?to (?:the nearest )?(\w+)", description.lower())
    if rounded:
        value = round(value, _PLACES.get(rounded.group(1), 0))
    elif (places := re.search(r"\b(\w+) decimals?\b", description.lower())) and places.group(1) in _PLACES:
        value = round(value, _PLACES[places.group(1)])
    if kind == "integer":
        return round(value)
    return float(value) if isinstance(value, float) else value
