"""The canonical form of an answer: what two answers must share to be the same answer.

The published schema decides. A field of type ``string`` is compared as text (Unicode form, white space and case aside),
``integer`` and ``number`` as a number however it is written, ``boolean`` as a truth value; ``"1"`` and ``1`` are the
same under either of the first two, ``True`` is never ``1``. An array keeps its order, unless its schema says
``uniqueItems``: then it is a set. Every form carries its type, so that no two types are ever equal.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from agent_world.environments.model import Json

Schema = Mapping[str, Any]
Canonical = tuple[Any, ...]
"""A hashable form: ``("text", "salt and stone")``, ``("number", 3)``, ``("list", (...))``."""

_NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)?(\.\d*)?(e[+-]?\d{1,3})?", re.ASCII)
_LONGEST_NUMBER = 400


def canonical(value: Json, schema: Schema) -> Canonical:
    """The canonical form of one value under its field's schema.

    A value that cannot be read as the schema's type keeps its own form, which equals no form of the right type.
    """
    if value is None:
        return ("null",)
    types = _types(schema)
    if isinstance(value, list | tuple):
        items = [canonical(item, schema.get("items", {})) for item in value]
        if schema.get("uniqueItems"):
            return ("set", tuple(sorted(set(items), key=repr)))
        return ("list", tuple(items))
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        return ("object", tuple((key, canonical(value[key], properties.get(key, {}))) for key in sorted(value)))
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, str):
        return _canonical_text(value, types)
    if not math.isfinite(value):
        return ("invalid", repr(value))
    if "string" in types and not types & {"integer", "number"}:
        return ("text", str(_plain(value)))
    return ("number", _plain(value))


def misfits(answer: Json, schema: Schema) -> list[str]:
    """Why `answer` does not have the shape that ``answer_schema`` publishes; empty when it has."""
    if not isinstance(answer, Mapping):
        return ["the answer is not an object"]
    properties = schema["properties"]
    missing = [f"{field} is missing" for field in schema.get("required", properties) if field not in answer]
    unknown = [f"{field} is not asked for" for field in answer if field not in properties]
    wrong = [
        f"{field} is not of type {'|'.join(sorted(_types(properties[field])))}"
        for field in properties
        if field in answer and not _fits(answer[field], properties[field])
    ]
    return missing + unknown + wrong


def aligned(answer: Mapping[str, Json], gold: Mapping[str, Json], schema: Schema) -> dict[str, Json]:
    """`answer` with each field that equals gold's up to canonical form written as gold writes it.

    A verifier may then compare values plainly: spelling that does not count is gone, all else is as the agent wrote it.
    """
    properties = schema["properties"]
    same = {name for name in gold if name in answer and _same(answer[name], gold[name], properties.get(name, {}))}
    return {name: gold[name] if name in same else value for name, value in answer.items()}


def number_in(value: Json) -> float | int | None:
    """The finite number that `value` is or spells, else None; a truth value is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    form = canonical(value, {"type": "number"})
    return form[1] if form[0] == "number" else None


def _same(one: Json, other: Json, schema: Schema) -> bool:
    return canonical(one, schema) == canonical(other, schema)


def _types(schema: Schema) -> set[str]:
    declared = schema.get("type", ())
    return {declared} if isinstance(declared, str) else set(declared)


def _canonical_text(value: str, types: set[str]) -> Canonical:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", value).casefold())
    text = " ".join(folded.split())
    if "string" not in types:
        if types & {"integer", "number"} and (number := _parsed(text)) is not None:
            return ("number", number)
        if "boolean" in types and text in ("true", "false"):
            return ("boolean", text == "true")
    return ("text", text)


def _parsed(text: str) -> int | float | None:
    if len(text) > _LONGEST_NUMBER or _NUMBER.fullmatch(text) is None:
        return None
    plain = text.replace(",", "")
    if plain.lstrip("+-").isdigit():
        return int(plain)
    try:
        number = float(plain)
    except ValueError:  # a sign, a point or an exponent without a digit
        return None
    return _plain(number) if math.isfinite(number) else None


def _plain(number: int | float) -> int | float:
    """A whole float as the integer it is: ``3.0`` and ``3`` are one number."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _fits(value: Json, schema: Schema) -> bool:
    types = _types(schema)
    if not types:
        return True
    form = canonical(value, schema)
    match form[0]:
        case "null":
            return "null" in types
        case "text":
            return "string" in types and ("enum" not in schema or form in _enumerated(schema))
        case "boolean":
            return "boolean" in types
        case "number":
            return "number" in types or ("integer" in types and isinstance(form[1], int))
        case "list" | "set":
            return "array" in types and all(_fits(item, schema.get("items", {})) for item in value)
        case "object":
            return "object" in types
    return False


def _enumerated(schema: Schema) -> set[Canonical]:
    return {canonical(choice, schema) for choice in schema["enum"]}
