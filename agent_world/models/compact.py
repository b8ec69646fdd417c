"""A short notation for JSON, exact both ways, in which the tiny policy reads observations and writes arguments.

``{"book_id": "B3", "page": 2, "tags": ["new", "rare"]}`` is `` book_id="B3 page=2 tags=⟦"new¦"rare⟧``. A string is
led by a quotation mark, as names are inside instructions, so that it is spelt alike wherever it stands and is never
mistaken for a number; nothing closes it, the next key or mark does. A key carries its own separator, so that it can be
one token. A scalar may also be a reference (`references`): one mark, which stands for what it was given for. The marks
are ones that data hardly holds; a string with a mark in it is written as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from agent_world.environments.model import Json
from agent_world.models import references

LIST, END_LIST, RECORD, END_RECORD, NEXT = MARKS = "⟦⟧⦃⦄¦"

_BARE, _AS_JSON = '"', "'"
_MARK = re.compile(f"[={MARKS}]")
_REFERENCES = f"{references.MARKS[0]}-{references.MARKS[-1]}"
_REFERENCE = re.compile(f"[{_REFERENCES}]")
_NOT_BARE = re.compile(f"[={MARKS}{_REFERENCES}\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_ESCAPED = re.compile(f"[{_REFERENCES}\ud800-\udfff]")
_KEY = re.compile(f" [^\\s={MARKS}]*=")
_JSON = json.JSONDecoder()


Short = Callable[[Json], str | None]
"""Gives the reference that a scalar is written by, or None for one that is spelt."""


def spelt(value: Json) -> None:
    """No scalar has a reference."""


def unknown(mark: str) -> Json:
    """No reference means anything."""
    raise KeyError(mark)


class NotationError(ValueError):
    """The text is not in the notation; `at` counts characters from 0."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__(text, at)
        self.text, self.at = text, at

    def __str__(self) -> str:
        return f"not in the compact notation at character {self.at}: {self.text[self.at : self.at + 40]!r}"


def dump_record(record: Mapping[str, Json], short: Short = spelt) -> str:
    """The text of an object: its pairs, each led by a space; empty for an empty object."""
    return "".join(f" {quote(key, safe='')}={dump(value, short)}" for key, value in record.items())


def dump(value: Json, short: Short = spelt) -> str:
    """The text of any JSON value."""
    if isinstance(value, Mapping):
        return RECORD + dump_record(value, short) + END_RECORD
    if isinstance(value, (list, tuple)):
        items = (
            dump_record(item, short) if isinstance(item, Mapping) and item else dump(item, short) for item in value
        )
        return LIST + NEXT.join(items) + END_LIST
    if (reference := short(value)) is not None:
        return reference
    if isinstance(value, str):
        if _NOT_BARE.search(value):
            return _AS_JSON + json.dumps(value, ensure_ascii=bool(_ESCAPED.search(value)))
        return _BARE + value
    return json.dumps(value, allow_nan=False)


def opening(schema: Mapping[str, Json]) -> str:
    """With what a value of this JSON Schema begins, as far as its type tells."""
    return {"string": _BARE, "array": LIST, "object": RECORD}.get(str(schema.get("type")), "")


def load_record(text: str, meant: Callable[[str], Json] = unknown) -> dict[str, Json]:
    """The object that `text` is the text of; `meant` gives the value of a reference, or raises KeyError.

    Raises:
        NotationError: it is the text of none.
    """
    reader = _Reader(text, meant)
    record, end = reader.record(0)
    reader.require(end == len(text), end)
    return record


def load(text: str, meant: Callable[[str], Json] = unknown) -> Json:
    """The value that `text` is the text of; `meant` as in `load_record`.

    Raises:
        NotationError: it is the text of none.
    """
    reader = _Reader(text, meant)
    value, end = reader.value(0)
    reader.require(end == len(text), end)
    return value


class _Parsed(NamedTuple):
    value: Json
    end: int


class _Reader:
    """Recursive descent over one text; every method takes the place to begin at."""

    def __init__(self, text: str, meant: Callable[[str], Json]) -> None:
        self._text, self._meant = text, meant

    def require(self, condition: bool, at: int) -> None:
        if not condition:
            raise NotationError(self._text, at)

    def record(self, at: int) -> _Parsed:
        """Pairs up to the end of the text or a mark that closes them."""
        record: dict[str, Json] = {}
        while key := _KEY.match(self._text, at):
            record[unquote(key.group()[1:-1])], at = self.value(key.end())
        return _Parsed(record, at)

    def value(self, at: int) -> _Parsed:
        text = self._text
        if text.startswith(LIST, at):
            return self._list(at + 1)
        if text.startswith(RECORD, at):
            record, end = self.record(at + 1)
            self.require(text.startswith(END_RECORD, end), end)
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
            self.require(end > at, at)
        return _Parsed(self._scalar(at, end), end)

    def _scalar(self, at: int, end: int) -> Json:
        raw = self._text[at:end]
        if raw.startswith(_BARE):
            self.require(not _REFERENCE.search(raw), at)
            return raw[1:]
        try:
            if _REFERENCE.fullmatch(raw):
                return self._meant(raw)
            value = json.loads(raw, parse_constant=lambda name: self.require(False, at))
        except (KeyError, ValueError) as error:
            raise NotationError(self._text, at) from error
        self.require(not isinstance(value, (str, list, dict)) and value not in (float("inf"), float("-inf")), at)
        return value

    def _list(self, at: int) -> _Parsed:
        text, items = self._text, []
        if text.startswith(END_LIST, at):
            return _Parsed(items, at + 1)
        while True:
            item, at = self.record(at) if _KEY.match(text, at) else self.value(at)
            items.append(item)
            self.require(at < len(text) and text[at] in (NEXT, END_LIST), min(at, len(text)))
            at += 1
            if text[at - 1] == END_LIST:
                return _Parsed(items, at)
