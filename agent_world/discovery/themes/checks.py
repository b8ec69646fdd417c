"""Schema checks of tool definitions, one tool at a time: a bad one is set aside and its neighbours stay.

The stored schema keeps its `$ref`s; whatever expands them does so to a limited depth (notes: hard-inputs A1-A7, A10).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_world.discovery.faults import fault
from agent_world.discovery.model import Quarantined
from agent_world.identity import canonical_json, sha256

MAX_NAME = 64
_JSON_TYPES = {
    "dict": "object",
    "map": "object",
    "hashmap": "object",
    "tuple": "array",
    "list": "array",
    "set": "array",
    "arraylist": "array",
    "float": "number",
    "double": "number",
    "long": "integer",
    "int": "integer",
    "char": "string",
    "str": "string",
    "bool": "boolean",
    "any": None,
    "none": "null",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTools:
    """Tools that passed, with distinct names, and those that did not."""

    tools: tuple[Mapping[str, Any], ...]
    faults: tuple[Quarantined, ...]


def check_tools(raw_tools: Sequence[Any], origin: str) -> CheckedTools:
    """Keep the usable definitions as {name, description, input_schema, output_schema?, original_name?}.

    Accepts MCP's `inputSchema`, function documentation's `parameters`, and our own `input_schema`.
    """
    kept: list[dict[str, Any]] = []
    faults: list[Quarantined] = []
    names: dict[str, str] = {}
    for position, raw in enumerate(raw_tools):
        name = raw.get("name") if isinstance(raw, Mapping) else None
        item = f"{origin}#{name or position}"
        found = _fault_of(raw)
        if found:
            faults.append(_quarantined(item, *found, raw))
            continue
        tool = _definition(raw)
        body = canonical_json({**tool, "name": ""})
        if names.get(tool["name"]) == body:
            faults.append(_quarantined(item, "duplicate_tool", "the same definition is listed twice", raw))
            continue
        if tool["name"] in names:
            faults.append(
                _quarantined(item, "name_collision", "two different tools share this name; both are kept", raw)
            )
            tool["original_name"] = raw["name"]
            tool["name"] = _free_name(tool["name"], names)
        names[tool["name"]] = body
        kept.append(tool)
    return CheckedTools(tools=tuple(kept), faults=tuple(faults))


def json_types(schema: Any) -> Any:
    """The schema with type names of other systems (`dict`, `float`, `tuple`, `any`) as JSON Schema types."""
    if isinstance(schema, list):
        return [json_types(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    mapped = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str) and value.lower() in _JSON_TYPES:
            value = _JSON_TYPES[value.lower()]
            if value is None:
                continue
        mapped[str(key)] = json_types(value) if isinstance(value, (Mapping, list)) else value
    return mapped


def short_name(name: str) -> str:
    """A name of at most 64 characters; a longer one is cut and told apart by a hash of the whole."""
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 9]}_{sha256(name)[:8]}"


def _fault_of(raw: Any) -> tuple[str, str] | None:
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    if not isinstance(raw, Mapping) or not isinstance(raw.get("name"), str) or not raw["name"].strip():
        return "no_name", "the tool has no name"
    schema = _input_schema(raw)
    if schema is None:
        return "no_input_schema", "the tool declares no input schema"
    if not isinstance(schema, Mapping):
        return "bad_input_schema", "the input schema is not an object"
    for label, given in (("input", schema), ("output", _output_schema(raw))):
        if given is None:
            continue
        if not isinstance(given, Mapping):
            return f"bad_{label}_schema", f"the {label} schema is not an object"
        mapped = json_types(given)
        if label == "input" and mapped.get("type", "object") != "object":
            return "bad_input_schema", f"the input schema has type {mapped['type']!r}, arguments are an object"
        try:
            validator_for(mapped, default=Draft7Validator).check_schema(mapped)  # draft 7 checks seven times faster
        except SchemaError as error:
            return "invalid_schema", f"{label} schema: {error.message[:200]}"
        except RecursionError:
            return "invalid_schema", f"{label} schema is nested too deep"
        for reference in _references(mapped):
            if reference.startswith("#") and _resolve(mapped, reference) is None:
                return "dangling_ref", f"{label} schema refers to {reference}, which does not exist"
    return None


def _definition(raw: Mapping[str, Any]) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "name": short_name(raw["name"]),
        "description": str(raw.get("description") or "").strip(),
        "input_schema": {"type": "object", **json_types(_input_schema(raw))},
    }
    if _output_schema(raw) is not None:
        tool["output_schema"] = json_types(_output_schema(raw))
    if tool["name"] != raw["name"]:
        tool["original_name"] = raw["name"]
    return tool


def _input_schema(raw: Mapping[str, Any]) -> Any:
    return next((raw[key] for key in ("inputSchema", "input_schema", "parameters") if key in raw), None)


def _output_schema(raw: Mapping[str, Any]) -> Any:
    return next((raw[key] for key in ("outputSchema", "output_schema", "response") if raw.get(key) is not None), None)


def _free_name(name: str, taken: Mapping[str, str]) -> str:
    number = 2
    while short_name(f"{name}_{number}") in taken:
        number += 1
    return short_name(f"{name}_{number}")


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _resolve(root: Mapping[str, Any], reference: str) -> Any:
    node: Any = root
    for part in reference.lstrip("#").strip("/").split("/"):
        if not part:
            continue
        part = part.replace("~1", "/").replace("~0", "~")
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def _quarantined(item: str, reason: str, why: str, raw: Any) -> Quarantined:
    return fault("themes", item, reason, why, json.dumps(raw, sort_keys=True, ensure_ascii=False, default=str).encode())
