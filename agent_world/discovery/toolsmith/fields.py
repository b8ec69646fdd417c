"""Which fields of an entity a tool shows, and which columns are worth filtering, ranking and summing up."""

from __future__ import annotations

from collections.abc import Sequence

from agent_world.discovery.toolsmith.view import Entity, Field, Link, own_field, parent_field
from agent_world.discovery.toolsmith.words import EVERYDAY, ascii_words
from agent_world.environments.model import Column

_RECORD_FIELDS = 10
_ENUM_VALUES = 16
_ENUM_LENGTH = 32
_GROUP_VALUES = 60
_DATE_PARTS = {"day", "hour", "minute", "second", "month", "week", "weekday"}
_CODES = frozenset(
    "code symbol number iata icao alpha abbreviation isbn email zip postal numeric ident id short flight ticker key "
    "slug acronym".split()
)
_DULL = {
    "latitude",
    "longitude",
    "lat",
    "lon",
    "uncertainty",
    "error",
    "offset",
    "position",
    "index",
    "value",
    "code",
    "id",
    "number",
    "zone",
    "bytes",
}
_DULL_GROUPS = {"postal", "post", "zip", "address", "phone", "fax", "street", "code", "unit", "rep", "saving"}


def head_fields(entity: Entity) -> list[Field]:
    """What names a row: its key and its label, or the whole primary key."""
    if entity.key is None:
        return [own_field(entity, entity.table.column(name)) for name in entity.table.primary_key]
    return [own_field(entity, column) for column in (entity.key, entity.label) if column is not None]


def item_fields(entity: Entity, focus: Sequence[Field] = (), without: str | None = None) -> list[Field]:
    """The few fields of a list item: what names it, the fields in `focus`, and what tells like-named rows apart."""
    head = head_fields(entity)
    chosen = {field.name: field for field in (*head, *focus)}
    room = 4 if entity.label is None else max(3, len(chosen))
    for field in _telling(entity):
        if len(chosen) >= room:
            break
        if without is None or (field.column.name if field.via is None else field.via.column.name) != without:
            chosen.setdefault(field.name, field)
    return list(chosen.values())


def record_fields(entity: Entity) -> list[Field]:
    """All that is worth knowing about one row, the most telling first."""
    chosen = {field.name: field for field in head_fields(entity)}
    for link in entity.links:
        label = parent_field(entity, link)
        if label is None or not link.parent.is_dimension:
            key = own_field(entity, link.column)
            chosen.setdefault(key.name, key)
        if label is not None:
            chosen.setdefault(label.name, label)
    roles = ("category", "measure", "money", "rating", "year", "date", "clock", "flag", "code", "text")
    for column in entity.with_roles(*roles):
        if column.name not in entity.wide and column.distinct > 1:
            field = own_field(entity, column)
            chosen.setdefault(field.name, field)
    return list(chosen.values())[:_RECORD_FIELDS]


def group_fields(entity: Entity) -> list[Field]:
    """Fields with few values that rows can be filtered and grouped by, the most telling first."""
    found = [own_field(entity, column) for column in entity.with_roles("category") if _is_group(entity, column)]
    for link in entity.links:
        label = parent_field(entity, link)
        if label is not None and link.parent.is_dimension:
            found.append(label)
        elif label is None and _is_group(entity, link.column) and link.column.type == "text":
            found.append(own_field(entity, link.column))
    found += [own_field(entity, column) for column in entity.with_roles("flag") if column.distinct == 2]
    worth = {field.name: _group_interest(entity, field) for field in found if _filled(entity, field) >= 0.5}
    return sorted((f for f in found if worth.get(f.name, 0.0) > 0), key=lambda field: -worth[field.name])


def measure_fields(entity: Entity) -> list[Field]:
    """Quantities that rows can be ranked by and that can be averaged, the most telling first."""
    columns = [c for c in entity.with_roles("measure", "money", "rating") if c.type != "text" and c.distinct >= 8]
    found = [own_field(entity, column) for column in columns if not _is_part_or_counter(entity, column)]
    return sorted((f for f in found if _filled(entity, f) >= 0.4), key=lambda field: -_interest(entity, field))


def time_fields(entity: Entity) -> list[Field]:
    """Years, dates and times of day that can bound a list."""
    columns = entity.with_roles("year", "date", "clock")
    return [f for c in columns if c.distinct >= 4 and _filled(entity, f := own_field(entity, c)) >= 0.4]


def enum_values(entity: Entity, field: Field) -> tuple[str | int, ...]:
    """The values of `field` in order when they are few and short enough to be listed in a schema, else ()."""
    if field.via is not None:
        values = sorted({row for row in field.via.parent.values(field.column)})
    elif field.column.role == "flag":
        return ()
    else:
        values = sorted(set(entity.values(field.column)))
    return tuple(values) if len(values) <= _ENUM_VALUES and all(len(str(v)) <= _ENUM_LENGTH for v in values) else ()


def names_something(column: Column) -> bool:
    """Whether the name of a column of codes says that a code is one thing's own, or that of few."""
    return bool(_CODES & set(ascii_words(column.name)))


def link_field(entity: Entity, link: Link) -> Field:
    """How a link is shown in a list: by the label of its parent where it has one, else by the key itself."""
    return parent_field(entity, link) or own_field(entity, link.column)


def _telling(entity: Entity) -> list[Field]:
    fields = [link_field(entity, link) for link in entity.links]
    measures = {field.column.name for field in measure_fields(entity)}
    for column in entity.with_roles("category", "year", "code", "date", "clock", "measure", "money", "rating"):
        said = column.type == "text" or column.role == "year" or column.name in measures
        if said and column.name not in entity.wide and column.distinct > 1:
            fields.append(own_field(entity, column))
    return [field for field in fields if field.via is None or field.column.name not in field.via.parent.wide]


def _is_group(entity: Entity, column: Column) -> bool:
    return 2 <= column.distinct <= min(_GROUP_VALUES, max(2, len(entity.rows) // 3)) and column.name not in entity.wide


def _filled(entity: Entity, field: Field) -> float:
    column = field.column if field.via is None else field.via.column
    return len(entity.values(column)) / max(1, len(entity.rows))


def _is_part_or_counter(entity: Entity, column: Column) -> bool:
    """Whether a number is a part of a date or counts rows of something else (1, 2, 3, ... without a gap)."""
    words = set(ascii_words(column.name))
    if words & _DATE_PARTS and column.type == "integer":
        return True
    values = set(entity.values(column))
    counts = column.type == "integer" and min(values) in {0, 1} and max(values) - min(values) + 1 == len(values)
    return counts and not words & EVERYDAY.keys()


def _interest(entity: Entity, field: Field) -> float:
    """How much people care for a quantity: everyday words and money before technical figures, full columns first."""
    words = set(ascii_words(field.column.name))
    known = any(word in EVERYDAY or word.removesuffix("s") in EVERYDAY for word in words)
    return (
        2.0 * known
        + (field.column.role in {"money", "rating"})
        + _filled(entity, field)
        + bool(field.column.unit)
        - 2.0 * bool(words & _DULL)
        - 0.3 * len(words)
        + min(field.column.distinct, 50) / 100
    )


def _group_interest(entity: Entity, field: Field) -> float:
    """How naturally people sort by a field: everyday words with a handful of readable values first."""
    if field.column.role == "flag":
        return 0.3
    words = set(ascii_words(field.name))
    values = field.via.parent.values(field.column) if field.via else entity.values(field.column)
    readable = sum(len(str(value)) >= 3 for value in values) >= 0.8 * len(values)
    count = len(set(values))
    return (
        1.0 * any(word in EVERYDAY or word.removesuffix("s") in EVERYDAY for word in words)
        + 0.8 * bool(field.via)
        + 0.7 * (readable and field.column.type == "text")
        + 0.4 * (3 <= count <= 20)
        - 1.5 * bool(words & _DULL_GROUPS)
        - 0.1 * len(words)
    )
