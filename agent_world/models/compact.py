"""A short notation for JSON, exact both ways, in which the tiny policy reads observations and writes arguments.

``{"book_id": "B3", "page": 2, "tags": ["new", "rare"]}`` is `` book_id="B3 page=2 tags=⟦"new¦"rare⟧``. A string is
led by a quotation mark, as names are inside instructions, so that it is spelt alike wherever it stands and is never
mistaken for a number; nothing closes it, the next key or mark does. A key carries its own separator, so that it can be
one token. The marks are ones that data hardly holds; a string with a mark in it is written as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from agent_world.environments.model import Json

LIST, END_LIST, RECORD, END_RECORD, NEXT = MARKS = "⟦⟧⦃⦄¦"

_BARE, _AS_JSON = '"', "'"
_MARK = re.compile(f"[={MARKS}]")
_NOT_BARE = re.compile(f"[={MARKS}\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_KEY = re.compile(f" [^\\s={MARKS}]*=")
_JSON = json.JSONDecoder()


class NotationError(ValueError):
    """The text is not in the notation; `at` counts characters from 0."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__(text, at)
        self.text, self.at = text, at

    def __str__(self) -> str:
        return f"not in the compact notation at character {self.at}: {self.text[self.at : self.at + 40]!r}"


def dump_record(record: Mapping[str, Json]) -> str:
    """The text of an object: its pairs, each led by a space; empty for an empty object."""
    return "".join(f" {quote(key, safe='')}={dump(value)}" for key, value in record.items())


def dump(value: Json) -> str:
    """The text of any JSON value."""
    if isinstance(value, str):
        if _NOT_BARE.search(value):
            return _AS_JSON + json.dumps(value, ensure_ascii=bool(_SURROGATE.search(value)))
        return _BARE + value
    if isinstance(value, Mapping):
        return RECORD + dump_record(value) + END_RECORD
    if isinstance(value, (list, tuple)):
        items = (dump_record(item) if isinstance(item, Mapping) and item else dump(item) for item in value)
        return LIST + NEXT.join(items) + END_LIST
    return json.dumps(value, allow_nan=False)


def opening(schema: Mapping[str, Json]) -> str:
    """With what a value of this JSON Schema begins, as far as its type tells."""
    return {"string": _BARE, "array": LIST, "object": RECORD}.get(str(schema.get("type")), "")


def load_record(text: str) -> dict[str, Json]:
    """The object that `text` is the text of.

    Raises:
        NotationError: it is the text of none.
    """
    record, end = _record(text, 0)
    _require(end == len(text), text, end)
    return record


def load(text: str) -> Json:
    """The value that `text` is the text of.

    Raises:
        NotationError: it is the text of none.
    """
    value, end = _value(text, 0)
    _require(end == len(text), text, end)
    return value


class _Parsed(NamedTuple):
    value: Json
    end: int


def _require(condition: bool, text: str, at: int) -> None:
    if not condition:
        raise NotationError(text, at)


def _record(text: str, at: int) -> _Parsed:
    """Pairs up to the end of `text` or a mark that closes them."""
    record: dict[str, Json] = {}
    while key := _KEY.match(text, at):
        record[unquote(key.group()[1:-1])], at = _value(text, key.end())
    return _Parsed(record, at)


def _value(text: str, at: int) -> _Parsed:
    if text.startswith(LIST, at):
        return _list(text, at + 1)
    if text.startswith(RECORD, at):
        record, end = _record(text, at + 1)
        _require(text.startswith(END_RECORD, end), text, end)
        return _Parsed(record, end + 1)
    if text.startswith(_AS_JSON, at):
        try:
            return _Parsed(*_JSON.raw_decode(text, at + 1))
        except ValueError as error:
            raise NotationError(text, at) from error
    mark = _MARK.search(text, at)
    end = mark.start() if mark else len(text)
    if mark and mark.group() == "=":  # the last word is the next key
        end = text.rfind(" ", at, end)
        _require(end > at, text, at)
    return _Parsed(_scalar(text, at, end), end)


def _scalar(text: str, at: int, end: int) -> Json:
    raw = text[at:end]
    if raw.startswith(_BARE):
        return raw[1:]
    try:
        value = json.loads(raw, parse_constant=lambda name: _require(False, text, at))
    except ValueError as error:
        raise NotationError(text, at) from error
    _require(not isinstance(value, (str, list, dict)) and value not in (float("inf"), float("-inf")), text, at)
    return value


def _list(text: str, at: int) -> _Parsed:
    items: list[Json] = []
    if text.startswith(END_LIST, at):
        return _Parsed(items, at + 1)
    while True:
        item, at = _record(text, at) if _KEY.match(text, at) else _value(text, at)
        items.append(item)
        _require(at < len(text) and text[at] in (NEXT, END_LIST), text, min(at, len(text)))
        at += 1
        if text[at - 1] == END_LIST:
            return _Parsed(items, at)
