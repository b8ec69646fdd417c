"""Text cells to typed columns by explicit rules, each of which is written into the column it made.

A marker such as "NA" is a null only where the same table uses it among numbers: in `cc,continent / NA,AF` it stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent_world.environments.model import ColumnType

Value = str | int | float | None

_MARKERS = {"NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "-", "--", "?"}
_ALWAYS_NULL = {"", "\\N"}
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,18})")
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_LEADING_ZERO = re.compile(r"-?0\d+")
_SLASH_DATE = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
_CLOCK_NAME = re.compile(r"(^|_)time$|_(dep|arr)$")
_TRUTH = {"true": 1, "false": 0, "True": 1, "False": 0, "TRUE": 1, "FALSE": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedColumn:
    """Values of one column with one type. `rule` says what reading them took ("" when nothing)."""

    type: ColumnType
    values: tuple[Value, ...]
    rule: str = ""
    flag: bool = False
    clock: bool = False


def null_markers(columns: Sequence[Sequence[str | None]]) -> frozenset[str]:
    """The markers that this table uses for "no value": those found in columns whose other values are all numbers."""
    found: set[str] = set()
    for values in columns:
        distinct = Counter(value for value in values if value is not None)
        markers = [value for value in distinct if value in _MARKERS]
        others = [value for value in distinct if value not in _MARKERS and value not in _ALWAYS_NULL]
        if markers and len(others) >= 2 and all(_REAL.fullmatch(value) for value in others):
            found.update(markers)
    return frozenset(found)


def type_column(name: str, values: Sequence[str | None], markers: frozenset[str] = frozenset()) -> TypedColumn:
    """Type one column. `name` is its clean name; it decides only whether HHMM integers are times of day."""
    cells = [
        None if value is None or value in _ALWAYS_NULL or value in markers else value.strip() or None
        for value in values
    ]
    distinct = {value for value in cells if value is not None}
    nulls = sorted(markers & {value for value in values if value})
    rule = f"{', '.join(nulls)} read as no value" if nulls else ""
    if not distinct:
        return TypedColumn(type="text", values=tuple(cells), rule=rule)
    if distinct <= _TRUTH.keys():
        return TypedColumn(
            type="integer",
            values=tuple(None if c is None else _TRUTH[c] for c in cells),
            flag=True,
            rule=_and(rule, "true/false read as 1/0"),
        )
    if all(_THOUSANDS.fullmatch(v) or _REAL.fullmatch(v) for v in distinct) and any("," in v for v in distinct):
        cells = [None if c is None else c.replace(",", "") for c in cells]
        distinct = {c for c in cells if c is not None}
        rule = _and(rule, "thousands separators removed")
    if any(_LEADING_ZERO.fullmatch(value) for value in distinct):
        return TypedColumn(type="text", values=tuple(cells), rule=rule)
    if all(_INTEGER.fullmatch(value) for value in distinct):
        numbers = [None if c is None else int(c) for c in cells]
        if all(n is None or -(2**63) <= n < 2**63 for n in numbers):
            if _CLOCK_NAME.search(name) and _is_clock(numbers):
                clock = tuple(None if n is None else f"{n // 100:02d}:{n % 100:02d}" for n in numbers)
                return TypedColumn(type="text", values=clock, clock=True, rule=_and(rule, "HHMM written as HH:MM"))
            return TypedColumn(type="integer", values=tuple(numbers), rule=rule)
    if all(_REAL.fullmatch(value) for value in distinct):
        reals = tuple(None if c is None else float(c) for c in cells)
        if all(value is None or abs(value) < 1e300 for value in reals):
            return TypedColumn(type="real", values=reals, rule=rule)
    dates = _slash_dates(distinct)
    if dates:
        return TypedColumn(
            type="text",
            values=tuple(None if c is None else dates[c] for c in cells),
            rule=_and(rule, "dates written as YYYY-MM-DD"),
        )
    return TypedColumn(type="text", values=tuple(cells), rule=rule)


def _is_clock(numbers: Sequence[int | None]) -> bool:
    known = [n for n in numbers if n is not None]
    return len(set(known)) > 30 and all(0 <= n <= 2400 and n % 100 < 60 for n in known)


def _slash_dates(distinct: set[str]) -> dict[str, str]:
    """The ISO form of month/day/year or day/month/year texts, when the values themselves tell which it is."""
    parts = {value: _SLASH_DATE.fullmatch(value) for value in distinct}
    if not all(parts.values()):
        return {}
    first = {int(match[1]) for match in parts.values()}
    second = {int(match[2]) for match in parts.values()}
    if max(first) <= 12 < max(second):
        month, day = 1, 2
    elif max(second) <= 12 < max(first):
        month, day = 2, 1
    else:
        return {}
    return {value: f"{match[3]}-{int(match[month]):02d}-{int(match[day]):02d}" for value, match in parts.items()}


def _and(rule: str, more: str) -> str:
    return f"{rule}; {more}" if rule else more
