"""What a column is for: roles by name and values, and the column that names a row for people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent_world.discovery.columns import TypedColumn, Value
from agent_world.environments.model import Column, ColumnRole

_MONEY = re.compile(
    r"(^|_)(price|cost|amount|salary|revenue|sales|profit|budget|fee|gross|wage|income|box_office|total)(_|$)"
)
_RATING = re.compile(r"(^|_)(rating|score|meter|stars|metacritic)(_|$)")
_CODE = re.compile(r"(^|_)(id|code|number|zip|postal|post|isbn|numeric|num|iata|icao|alpha|key|flight)(_\d)?$")
_NAME = re.compile(r"(^|_)(name|title|label|description|caption)$")
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?([T ]\d\d:\d\d.*)?")
_TEXT_LENGTH = 60
_LABEL_LENGTH = 240


def role_of(name: str, column: TypedColumn) -> ColumnRole:
    """The role of a column that is neither key nor reference; names decide before statistics.

    Without enough rows (30) statistics decide nothing: a small text column is a category only if values repeat.
    """
    known = [value for value in column.values if value is not None]
    distinct = len(set(known))
    if column.flag or (column.type == "integer" and set(known) == {0, 1}):
        return "flag"
    if column.clock:
        return "clock"
    if column.type == "text":
        return _text_role(name, [str(value) for value in known], distinct)
    if re.search(r"(^|_)(year|yr)(_id)?$", name) and all(1000 <= value <= 2200 for value in known):
        return "year"
    if _MONEY.search(name):
        return "money"
    if _RATING.search(name):
        return "rating"
    if column.type == "integer" and _CODE.search(name):
        return "code"
    few = column.type == "integer" and distinct <= 10 and len(known) >= 30
    return "category" if few and not re.search(r"(count|quantity|seats)", name) else "measure"


def _text_role(name: str, known: list[str], distinct: int) -> ColumnRole:
    longest = max(map(len, known))
    if all(_DATE.fullmatch(value) for value in known[:2000]):
        return "date"
    if all(value[0] in "[{" for value in known[:200]):
        return "list"
    if _NAME.search(name) and longest <= 3 * _TEXT_LENGTH:
        return "label" if name.endswith(("name", "title", "label")) else "text"
    if sum(map(len, known)) / len(known) > _TEXT_LENGTH:
        return "text"
    if distinct == len(known) and longest <= 12 and not any(" " in value for value in known):
        return "code"
    if distinct <= 60 and distinct <= max(2, 0.34 * len(known)):
        return "category"
    if _CODE.search(name) and longest <= 16:
        return "code"
    return "text"


def choose_label(columns: Sequence[Column], values: Mapping[str, tuple[Value, ...]]) -> str | None:
    """The column that names a row for people; "first|last" when it takes two; None when nothing does."""
    names = {column.name for column in columns}
    for first, last in (("first_name", "last_name"), ("given_name", "family_name")):
        if {first, last} <= names:
            return f"{first}|{last}"
    best: tuple[tuple[float, ...], str] | None = None
    for position, column in enumerate(columns):
        known = [value for value in values[column.name] if value is not None]
        if column.type != "text" or not known or column.role in {"reference", "list", "date", "clock", "category"}:
            continue
        wordy = sum(bool(re.search(r"[^\W\d_]{2}", str(value))) for value in known[:500]) / len(known[:500])
        if wordy < 0.9 or max(len(str(value)) for value in known) > _LABEL_LENGTH:
            continue
        is_code = column.role == "identifier" and sum(map(len, map(str, known))) < 8 * len(known)
        if is_code:
            continue  # a short code names a row for machines only
        named = column.name in {"name", "title"} or bool(_NAME.search(column.name))
        uniqueness = len(set(known)) / len(known)
        if not named and uniqueness < 0.95:
            continue
        named = named or column.role == "identifier"
        score = (named, column.name in {"name", "title"}, round(uniqueness, 2), column.role != "identifier", -position)
        if best is None or score > best[0]:
            best = (score, column.name)
    return best[1] if best else None
