"""Valid argument values from `D`, from a tool's schema, or from short lists of everyday words."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from agent_world.environments.model import Json, Meaning, Tool
from agent_world.tasks.catalogue import Catalogue, subject

_FIRST = (
    "Amara Bastian Celia Dario Elif Farid Greta Hana Ines Jonas Keiko Luca Mira Nadim Oona Pavel Rosa Stellan Tilda "
    "Yusuf"
).split()
_LAST = (
    "Abbott Brandt Castell Doyle Eriksen Fontaine Grau Hollis Ibarra Jansen Kovac Lindqvist Marsh Novak Okafor Petrov "
    "Quist Rahman Soto Tanaka Umarov Vidal Weiss Young Zeller"
).split()
_PERSON = re.compile(
    r"\b(name|person|passenger|guest|holder|customer|client|member|reader|user|owner|reviewer|reporter|assignee|agent|"
    r"requester|author|contact|traveller|borrower|by|who|whom)\b"
)
_NOTES = (
    "checked twice", "as agreed by phone", "urgent", "please confirm by mail", "second attempt", "see earlier request",
    "for the annual report", "needs a closer look", "handle with care", "approved by the board", "asked for by a guest",
)  # fmt: skip
_SMALL = (2, 3, 4, 5)


def person(rng: random.Random) -> str:
    """A made-up full name."""
    return f"{rng.choice(_FIRST)} {rng.choice(_LAST)}"


def optional_choice(tool: Tool, parameter: str, given: Mapping[str, object], rng: random.Random) -> bool:
    """Whether a call that may leave `parameter` out gives it: orders often, the first filter mostly, pages never."""
    kind = tool.inputs[parameter].kind
    if kind == "page":
        return False
    if kind in ("filter", "threshold", "key", "label", "status"):
        return rng.random() < (0.8 if not given else 0.45)
    return rng.random() < (0.9 if kind == "order" else 0.4)


def value_for(
    catalogue: Catalogue, tool: Tool, parameter: str, rows: dict[str, dict[str, Json]], rng: random.Random
) -> Json:
    """A value for `parameter` that the tool's schema allows; None when there is none.

    Filters and bounds of one call take their values from one row of `D` (kept in `rows`), so that together they let
    at least that row through.
    """
    schema = tool.input_schema["properties"][parameter]
    meaning = tool.inputs[parameter]
    if meaning.kind in ("filter", "threshold") and meaning.table and meaning.column:
        return _of_row(catalogue, tool, parameter, meaning, schema, rows, rng)
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        allowed = [n for n in _SMALL if schema.get("minimum", n) <= n <= schema.get("maximum", n)]
        return rng.choice(allowed) if allowed else schema.get("minimum")
    if kind == "string" and meaning.kind in ("text", "value", "quantity") and "pattern" not in schema:
        return person(rng) if is_person(tool, parameter) else rng.choice(_NOTES)
    return None


def is_person(tool: Tool, parameter: str) -> bool:
    """Whether a free text parameter asks for somebody's name."""
    said = str(tool.input_schema["properties"][parameter].get("description", ""))
    return _PERSON.search(f"{parameter.replace('_', ' ')} {said}".lower()) is not None


def _of_row(
    catalogue: Catalogue,
    tool: Tool,
    parameter: str,
    meaning: Meaning,
    schema: Mapping[str, Json],
    rows: dict[str, dict[str, Json]],
    rng: random.Random,
) -> Json:
    table = meaning.table or ""
    own = subject(tool)
    if table not in rows:
        row = None
        if own and own != table and own in rows:
            link = catalogue.reference(own, table, parameter)
            row = catalogue.facts.row(table, link.parent_column, rows[own].get(link.column)) if link else None
        row = row or catalogue.facts.draw(table, rng)
        if row is None:
            return rng.choice(schema["enum"]) if schema.get("enum") else None
        rows[table] = row
    value = rows[table].get(meaning.column or "")
    kind = schema.get("type")
    if value is None:
        return None
    if kind == "boolean":
        # To a reader "not marked" takes in rows without a mark as well; the tool's filter does not.
        is_open = catalogue.database.table(table).column(meaning.column or "").nullable
        return None if is_open and not value else bool(value)
    if schema.get("enum") and value not in schema["enum"]:
        return None
    if schema.get("pattern") and not re.search(schema["pattern"], str(value)):
        match = re.search(schema["pattern"].strip("^$"), str(value))
        value = match[0] if match else None
    if kind == "string" and value is not None:
        text = str(value)
        return text if '"' not in text and len(text) <= 60 else None
    return value
