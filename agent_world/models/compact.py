"""A short notation for JSON, exact both ways, in which the tiny policy reads observations and writes arguments.

``{"book_id": "B3", "page": 2, "tags": ["new", "rare"]}`` is `` book_id= B3 page=2 tags=[ new| rare]``. A string is
led by one space, so that it is spelt as it is inside an instruction and never mistaken for a number; a key carries its
own separator, so that it can be one token. Strings that hold a mark of the notation are written as JSON strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from agent_world.environments.model import Json

_MARKS = "=[]{}|"
_MARK = re.compile(f"[{re.escape(_MARKS)}]")
_NOT_BARE = re.compile(f'^$|^["\\s]|\\s$|[{re.escape(_MARKS)}\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]')
_SURROGATE = re.compile("[\ud800-\udfff]")
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
        return " " + (
            json.dumps(value, ensure_ascii=bool(_SURROGATE.search(value))) if _NOT_BARE.search(value) else value
        )
    if isinstance(value, Mapping):
        return "{" + dump_record(value) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + "|".join(dump_record(i) if isinstance(i, Mapping) and i else dump(i) for i in value) + "]"
    return json.dumps(value, allow_nan=False)


def load_record(text: str) -> dict[str, Json]:
    """The object that `text` is the text of.

    Raises:
        NotationError: it is the text of none.
    """
    record, end = _record(text, 0)
    _require(end == len(text), text, end)
    return record


def load(text: str) -> Json:
    """The value that `text` is the text of; a bare word where a literal should be is taken as a string.

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
    while at < len(text) and text[at] == " ":
        equals = text.find("=", at)
        key = text[at + 1 : equals]
        _require(equals > 0 and " " not in key and not _MARK.search(key), text, at)
        record[unquote(key)], at = _value(text, equals + 1)
    return _Parsed(record, at)


def _value(text: str, at: int) -> _Parsed:
    if text.startswith("[", at):
        return _list(text, at + 1)
    if text.startswith("{", at):
        record, end = _record(text, at + 1)
        _require(text.startswith("}", end), text, end)
        return _Parsed(record, end + 1)
    if text.startswith(' "', at):
        try:
            return _Parsed(*_JSON.raw_decode(text, at + 1))
        except ValueError as error:
            raise NotationError(text, at) from error
    mark = _MARK.search(text, at)
    end = mark.start() if mark else len(text)
    if mark and mark.group() == "=":  # the last word is the next key
        end = text.rfind(" ", at, end)
        _require(end >= at, text, at)
    return _Parsed(_scalar(text[at:end], text, at), end)


def _scalar(raw: str, text: str, at: int) -> Json:
    if raw.startswith(" "):
        return raw[1:]
    _require(raw != "", text, at)
    try:
        value = json.loads(raw)
    except ValueError:
        return raw
    return value if value == value and value not in (float("inf"), float("-inf")) else raw


def _list(text: str, at: int) -> _Parsed:
    items: list[Json] = []
    if text.startswith("]", at):
        return _Parsed(items, at + 1)
    while True:
        is_record = re.compile(r" [^\s=\[\]{}|\"]*=").match(text, at)
        item, at = _record(text, at) if is_record else _value(text, at)
        items.append(item)
        _require(at < len(text) and text[at] in "|]", text, min(at, len(text)))
        at += 1
        if text[at - 1] == "]":
            return _Parsed(items, at)
