"""What the reading tools must answer, worked out with lists and dictionaries over the source rows."""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from agent_world.discovery.toolsmith.view import Entity, Field, Link, Row
from agent_world.environments.model import Json

PAGE = 5


@lru_cache(maxsize=1 << 16)
def folded(text: str) -> str:
    """`text` without case and accents."""
    marks_apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in marks_apart if not unicodedata.combining(c)).casefold()


def parent_of(row: Row, link: Link) -> Row | None:
    """The row that `row` refers to by `link`."""
    value = row[link.column.name]
    return None if value is None else link.targets.get(value)


def value_of(row: Row, field: Field) -> Json:
    """What `field` shows of `row`."""
    holder = row if field.via is None else parent_of(row, field.via)
    value = None if holder is None else holder[field.column.name]
    return bool(value) if field.column.role == "flag" and value is not None else value


def shown(row: Row, fields: Iterable[Field]) -> dict[str, Json]:
    """`row` as a tool shows it."""
    return {field.name: value_of(row, field) for field in fields}


def paged(items: Sequence[Json], page: int) -> dict[str, Json]:
    """One page of a list result."""
    return {
        "items": list(items[(page - 1) * PAGE : page * PAGE]),
        "total": len(items),
        "page": page,
        "pages": max(1, -(-len(items) // PAGE)),
    }


def key_value(row: Row, entity: Entity) -> tuple[Json, ...]:
    """What breaks ties: the primary key, or the whole row where there is none."""
    names = entity.table.primary_key or tuple(row)
    return tuple(row[name] for name in names)


def with_text(entity: Entity, field: Field, text: str) -> list[Row]:
    """Rows whose `field` contains `text`: exact hits first, then by the text, then by key."""
    wanted = folded(text)
    hits = [row for row in entity.rows if row[field.column.name] is not None]
    hits = [row for row in hits if wanted in folded(row[field.column.name])]

    def place(row: Row) -> tuple[bool, str, tuple[Json, ...]]:
        name = folded(row[field.column.name])
        return name != wanted, name, key_value(row, entity)

    return sorted(hits, key=place)


def matching(entity: Entity, tests: Iterable[Callable[[Row], bool]]) -> list[Row]:
    """Rows that pass all `tests`."""
    checks = list(tests)
    return [row for row in entity.rows if all(check(row) for check in checks)]


def equals(field: Field, wanted: Json, *, exactly: bool) -> Callable[[Row], bool]:
    """Whether a row shows `wanted` as `field`; without `exactly`, texts are compared without case and accents."""

    def check(row: Row) -> bool:
        value = value_of(row, field)
        if isinstance(value, str) and isinstance(wanted, str) and not exactly:
            return folded(value) == folded(wanted)
        return value is not None and value == wanted

    return check


def at_least(field: Field, bound: Any) -> Callable[[Row], bool]:
    """Whether a row has a value of at least `bound` as `field`."""
    return lambda row: (value := value_of(row, field)) is not None and value >= bound


def by_name(rows: Iterable[Row], entity: Entity, field: Field | None) -> list[Row]:
    """Rows in order of a text field, those without it first, ties by key; by key alone when `field` is None."""

    def place(row: Row) -> tuple[Any, ...]:
        value = None if field is None else value_of(row, field)
        return value is not None, folded(value) if value is not None else "", key_value(row, entity)

    return sorted(rows, key=place)


def ranked(rows: Iterable[Row], entity: Entity, field: Field, order: str) -> list[Row]:
    """Rows that have a value in `field`, by that value; ties by key, smallest first whatever the order."""
    known = [row for row in rows if value_of(row, field) is not None]
    known.sort(key=lambda row: key_value(row, entity))
    known.sort(key=lambda row: value_of(row, field), reverse=order == "highest")
    return known


def grouped(rows: Iterable[Row], group: Field, measure: Field | None) -> list[dict[str, Json]]:
    """A row a group value: how many rows, and the mean of `measure`; largest groups first, ties by the group."""
    members: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        value = value_of(row, group)
        if value is not None:
            members[value].append(row)
    found = []
    for value, own in members.items():
        figures: dict[str, Json] = {group.name: value, "count": len(own)}
        if measure is not None:
            known = [number for row in own if (number := value_of(row, measure)) is not None]
            figures["mean"] = round(sum(known) / len(known), 2) if known else None
        found.append(figures)
    found.sort(key=lambda figures: figures[group.name])
    found.sort(key=lambda figures: figures["count"], reverse=True)
    return found


def figures(rows: Sequence[Row], measure: Field) -> dict[str, Json]:
    """Count, mean, lowest and highest value of `measure` over `rows`; values that are missing do not count."""
    known = [number for row in rows if (number := value_of(row, measure)) is not None]
    return {
        "count": len(rows),
        "mean": round(sum(known) / len(known), 2) if known else None,
        "lowest": min(known, default=None),
        "highest": max(known, default=None),
    }


def referring(child: Entity, link: Link, value: Json) -> list[Row]:
    """Rows of `child` that refer to `value`."""
    return [row for row in child.rows if row[link.column.name] == value]


def moment(value: Json, role: str) -> Json:
    """A time as a caller says it: a date as YYYY-MM-DD whatever stands behind it in the data, else as it is."""
    if role != "date":
        return value
    try:
        return datetime.fromisoformat(str(value)).date().isoformat()
    except ValueError:
        return value


def within(rows: Iterable[Row], entity: Entity, field: Field, low: Any, high: Any) -> list[Row]:
    """Rows whose `field` lies from `low` to `high`, in order of it, ties by key."""
    role = field.column.role
    found = [row for row in rows if low <= moment(value_of(row, field), role) <= high]
    return sorted(found, key=lambda row: (value_of(row, field), key_value(row, entity)))


def members(cell: Json) -> list[str]:
    """The texts in a list that a cell holds, however it is written."""
    if not isinstance(cell, str):
        return []
    try:
        found = json.loads(cell)
    except ValueError:
        try:
            found = ast.literal_eval(cell)
        except (ValueError, SyntaxError):
            return []
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def number_in(text: Json) -> float | None:
    """The number that a person reads in a short text: `1,234 ft` is 1234."""
    match = re.fullmatch(r"\D{0,3}(-?\d[\d,]*(?:\.\d+)?)\s*\D{0,10}", text) if isinstance(text, str) else None
    return float(match[1].replace(",", "")) if match else None
