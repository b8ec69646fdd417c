"""The JSON form of what foreign code returns: one form for each value, or a complaint that names it.

dict, sqlite3.Row, dataclass, named tuple: an object. list, tuple: an array. set: an array in order, numbers by size,
then strings, then the rest by its JSON text. enum: its value. date, time, datetime: ISO 8601. UUID: a string. Decimal:
a string too, as a JSON number would be read as a float and lose digits. bytes: base64. int: a number with all of its
digits, up to nearly a thousand. Keys are strings; scalars among them become what JSON would print, as long as no two
become the same.
"""

from __future__ import annotations

import binascii
import datetime
import decimal
import enum
import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Json = Any

_DEEPEST = 100
# Readers of JSON stop at integers of a few thousand digits: 3,300 bits are below a thousand.
_INTEGER_BITS = 3300
_SHOWN = 60


class NoJsonForm(TypeError):
    """A value that JSON cannot carry; `path` leads to it from the whole, such as ``items[3].price``."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.path, self.why = "", why

    def __str__(self) -> str:
        return f"{self.path.removeprefix('.') or 'the value'} {self.why}"


def plain(value: Any) -> Json:
    """`value` in its JSON form: dict with string keys, list, str, int, float, bool or None, all of them fresh.

    Raises:
        NoJsonForm: it has none; the message names where it stands and its type.
    """
    return _form(value, ())


def require_plain(value: Any) -> None:
    """See that `value` is its own JSON form, so that writing and reading it gives the same again.

    Raises:
        NoJsonForm: some part of it is not.
    """
    _require(value, ())


def _form(value: Any, within: tuple[int, ...]) -> Json:
    kind = type(value)
    if kind in _SCALARS:
        return _scalar(value)
    if kind is dict:
        return _object(value.items(), _inside(value, within))
    if kind is list or kind is tuple:
        return _array(value, _inside(value, within))
    for types, form in _OTHERS:
        if isinstance(value, types):
            return form(value, _inside(value, within))
    if (kind.__module__, kind.__qualname__) == ("uuid", "UUID"):
        return str(value)
    if hasattr(kind, "__dataclass_fields__"):
        return _dataclass(value, _inside(value, within))
    raise NoJsonForm(f"is a {kind.__qualname__}, which has no JSON form")


def _require(value: Any, within: tuple[int, ...]) -> None:
    kind = type(value)
    if kind in _SCALARS:
        _scalar(value)
    elif kind is dict:
        inside = _inside(value, within)
        for key, item in value.items():
            if type(key) is not str:
                raise _no_key(key)
            with _At(f".{key}"):
                _scalar(key)
                _require(item, inside)
    elif kind is list:
        inside = _inside(value, within)
        for index, item in enumerate(value):
            with _At(f"[{index}]"):
                _require(item, inside)
    else:
        raise NoJsonForm(f"is a {kind.__qualname__}, which is no plain JSON")


def _inside(value: Any, within: tuple[int, ...]) -> tuple[int, ...]:
    """The containers around what `value` holds."""
    if id(value) in within:
        raise NoJsonForm(f"is a {type(value).__qualname__} that contains itself")
    if len(within) == _DEEPEST:
        raise NoJsonForm(f"is a {type(value).__qualname__} nested more than {_DEEPEST} deep")
    return (*within, id(value))


class _At:
    """Says where a complaint arose that is raised inside."""

    __slots__ = ("part",)

    def __init__(self, part: str) -> None:
        self.part = part if len(part) <= _SHOWN else part[:_SHOWN] + "…"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NoJsonForm):
            error.path = self.part + error.path


def _scalar(value: Any) -> Json:
    kind = type(value)
    if kind is str:
        if not value.isascii():
            _require_text(value)
    elif kind is float:
        if not math.isfinite(value):
            raise NoJsonForm(f"is the float {value}, which has no JSON form")
    elif kind is int and value.bit_length() > _INTEGER_BITS:
        raise NoJsonForm(f"is an int of {value.bit_length()} bits, at most {_INTEGER_BITS} are allowed")
    return value


def _require_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NoJsonForm("is a str with a lone surrogate, which is no text") from None


def _object(items: Iterable[tuple[Any, Any]], within: tuple[int, ...]) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for key, item in items:
        name = key if type(key) is str and key.isascii() else _key(key)
        try:
            if name in result:
                raise NoJsonForm("stands for two keys of one object")
            kind = type(item)
            # Most of what there is goes the short way.
            plainly = (kind is str and item.isascii()) or kind is bool or item is None
            result[name] = item if plainly else _form(item, within)
        except NoJsonForm as error:
            with _At(f".{name}"):
                raise error
    return result


def _array(items: Iterable[Any], within: tuple[int, ...]) -> list[Json]:
    result: list[Json] = []
    try:
        for item in items:
            result.append(_form(item, within))  # noqa: PERF401 - its length says where a complaint arose
    except NoJsonForm as error:
        with _At(f"[{len(result)}]"):
            raise error
    return result


def _key(key: Any) -> str:
    try:
        form = _form(key, ())
    except NoJsonForm:
        raise _no_key(key) from None
    if isinstance(form, (list, dict)):
        raise _no_key(key)
    return form if isinstance(form, str) else json.dumps(form)


def _no_key(key: Any) -> NoJsonForm:
    return NoJsonForm(f"has a key of type {type(key).__qualname__} that is no text")


def _in_order(values: Iterable[Any], within: tuple[int, ...]) -> list[Json]:
    return sorted((_form(value, within) for value in values), key=_rank)


def _rank(item: Json) -> tuple[int, float, str]:
    if isinstance(item, str):
        return (1, 0, item)
    if isinstance(item, (int, float)) and not isinstance(item, bool):
        return (0, item, "")
    return (2, 0, json.dumps(item, sort_keys=True))


def _decimal(value: decimal.Decimal, _within: tuple[int, ...]) -> str:
    if not value.is_finite():
        raise NoJsonForm(f"is the Decimal {value}, which has no JSON form")
    return str(value)


def _tuple(value: tuple, within: tuple[int, ...]) -> Json:
    names = getattr(value, "_fields", None)
    return _array(value, within) if names is None else _object(zip(names, value, strict=True), within)


def _dataclass(value: Any, within: tuple[int, ...]) -> Json:
    import dataclasses  # half a process's start, and whoever has such a value has paid for it

    return _object(((field.name, getattr(value, field.name)) for field in dataclasses.fields(value)), within)


def _row(row: sqlite3.Row, within: tuple[int, ...]) -> Json:
    return _object(zip(row.keys(), row, strict=True), within)


_SCALARS = frozenset((str, int, float, bool, type(None)))
_OTHERS: tuple[tuple[Any, Callable[[Any, tuple[int, ...]], Json]], ...] = (
    # An enum may be an int or a str as well, and every datetime is a date.
    (enum.Enum, lambda value, within: _form(value.value, within)),
    ((datetime.date, datetime.time), lambda value, _: value.isoformat()),
    (decimal.Decimal, _decimal),
    ((bytes, bytearray), lambda value, _: binascii.b2a_base64(value, newline=False).decode()),
    (sqlite3.Row, _row),
    (Mapping, lambda value, within: _object(value.items(), within)),
    (tuple, _tuple),
    (list, _array),
    ((set, frozenset), _in_order),
    (str, lambda value, _: _scalar(str.__str__(value))),
    (int, lambda value, _: _scalar(int.__index__(value))),
    (float, lambda value, _: _scalar(float.__float__(value))),
)
