"""Schema-valid arguments drawn at random: from what an agent has read, or from the database itself."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from agent_world.environments.model import Json

Pick = Callable[[str, str, Random], Json]
"""`pick(parameter, type, rng)`: a value of that JSON type from wherever the caller draws, or None for no idea."""

OPTIONAL_SHARE = 0.3
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)'([^']+)'(?!\w)|`([^`]+)`")
_CAPITALISED = r"[A-ZÀ-ÖØ-Þ0-9](?:[\w'%&-]|\.(?=\w))*"
_NAME = re.compile(rf"{_CAPITALISED}(?:\s+(?:(?:of|de|la|the|and|du|von|van)\s+)?{_CAPITALISED})*")
_SENTENCE_START = re.compile(r"(?:^|[.?!]\s+)$")
_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:\.\d+)?(?![\w])")


def draw_arguments(schema: Mapping[str, Any], rng: Random, pick: Pick) -> dict[str, Json]:
    """Arguments that `schema` allows: every required parameter, an optional one now and then."""
    required = schema.get("required", ())
    return {
        name: draw_value(name, declared, rng, pick)
        for name, declared in schema.get("properties", {}).items()
        if name in required or rng.random() < OPTIONAL_SHARE
    }


def draw_value(name: str, schema: Mapping[str, Any], rng: Random, pick: Pick) -> Json:
    """One value of the declared type within its bounds."""
    if "enum" in schema:
        return rng.choice(list(schema["enum"]))
    match type_of(schema):
        case "boolean":
            return rng.random() < 0.5
        case "array":
            return [draw_value(name, schema.get("items", {}), rng, pick) for _ in range(rng.randint(1, 2))]
        case "object":
            return draw_arguments(schema, rng, pick)
        case "integer" | "number" as kind:
            return _draw_number(name, kind, schema, rng, pick)
        case "null":
            return None
    picked = pick(name, "string", rng)
    return "" if picked is None else picked


def type_of(schema: Mapping[str, Any]) -> str:
    """The JSON type a value should have: the first declared one that is not null, else string."""
    declared = schema.get("type", "string")
    if isinstance(declared, str):
        return declared
    return next((kind for kind in declared if kind != "null"), "null")


def entities(text: str) -> list[str]:
    """What an instruction names: quoted phrases, then capitalised ones; in order, each once."""
    quoted = [next(group for group in match.groups() if group) for match in _QUOTED.finditer(text)]
    rest = _QUOTED.sub(" , ", text)
    named = []
    for match in _NAME.finditer(rest):
        words = match.group().split()
        if _SENTENCE_START.search(rest[: match.start()]):
            words = words[1:]
        if words:
            named.append(" ".join(words))
    return list(dict.fromkeys([*quoted, *named]))


def numbers(text: str) -> list[int | float]:
    """The numbers an instruction states."""
    return [float(found) if "." in found else int(found) for found in _NUMBER.findall(text)]


def leaves(value: Json, key: str = "") -> Iterator[tuple[str, Json]]:
    """Every scalar of a JSON value with the nearest key it stands under, in order."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from leaves(item, name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item, key)
    else:
        yield key, value


def values_in(value: Json) -> list[Json]:
    """Every scalar of a JSON value, in order."""
    return [leaf for _, leaf in leaves(value)]


def _draw_number(name: str, kind: str, schema: Mapping[str, Any], rng: Random, pick: Pick) -> int | float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    high = max(schema.get("maximum", schema.get("exclusiveMaximum", low + 10) - 1), low)
    picked = pick(name, kind, rng)
    if isinstance(picked, int | float) and low <= picked <= schema.get("maximum", picked):
        return int(picked) if kind == "integer" else picked
    return rng.randint(math.ceil(low), max(math.ceil(low), math.floor(high)))
