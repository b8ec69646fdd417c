"""Raw tables to a database `D`: keys, types, roles, plain words and labels, and one SQLite file.

Works on any tables; nothing here knows a theme or a package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent_world.discovery.columns import TypedColumn, Value, null_markers, type_column
from agent_world.discovery.keys import Keys, Link, discover
from agent_world.discovery.model import RawTable
from agent_world.discovery.roles import choose_label, role_of
from agent_world.discovery.sampling import sample
from agent_world.discovery.snapshot import Built, assemble, share_found
from agent_world.discovery.words import expanded, name_words, noun_of, phrase, snake
from agent_world.environments.model import (
    Column,
    ColumnRole,
    Database,
    ForeignKey,
    Table,
)
from agent_world.identity import VersionId

MAX_ROWS = 2_000
"""Rows kept of one table of `D`: every episode copies the file."""

MAX_COLUMNS = 18
MAX_TEXT = 400
_UNNAMED = re.compile(r"column \d+")
_UNITS = {"milliseconds", "bytes", "lbs", "seconds", "minutes", "gallon", "mib", "gib", "tib", "mbps", "gbps"}
RESERVED = {"order", "group", "index", "table", "from", "to", "values", "check", "default", "references", "limit"}


def structure(
    tables: Sequence[RawTable],
    *,
    database_id: str,
    theme: VersionId,
    keys: Keys | None = None,
    max_rows: int = MAX_ROWS,
) -> tuple[Database, dict[str, bytes]]:
    """A database and its files from raw tables (with distinct names) that belong together.

    `keys` are the keys and links found on the full tables; without them they are found here.
    """
    keys = keys or discover(tables)
    names = {table.name for table in tables}
    links = [link for link in keys.links if link.child in names and link.parent in names]
    sampled = sample(tables, links, max_rows)
    built = build(sampled, keys.primary, links)
    return assemble(built, database_id=database_id, theme=theme)


def build(
    tables: Sequence[RawTable], primary: Mapping[str, str], links: Sequence[Link], *, added_in: int = 0
) -> list[Built]:
    """Structured tables in the order given, foreign keys with measured integrity."""
    table_names = _table_names(tables)
    drafts = {table.name: _Draft(table, table_names[table.name], primary.get(table.name), links) for table in tables}
    for link in links:
        _agree_on_type(drafts[link.child], link.column, drafts[link.parent], link.parent_column)
    return [_finish(draft, drafts, links, added_in) for draft in drafts.values()]


class _Draft:
    """A table under construction: clean names by original name, typed columns, the key."""

    def __init__(self, raw: RawTable, name: str, key: str | None, links: Sequence[Link]) -> None:
        self.raw, self.name, self.key = raw, name, key
        self.singular, self.plural = noun_of(raw.name)
        self.stem = tuple(self.singular.removesuffix(" entry").split())
        self.references = {link.column: link for link in links if link.child == raw.name}
        referenced = {link.parent_column for link in links if link.parent == raw.name}
        columns = list(zip(*raw.rows, strict=True))
        markers = null_markers(columns)
        typed = {
            original: type_column(snake(name_words(original)), values, markers)
            for original, values in zip(raw.header, columns, strict=True)
        }
        needed = {*self.references, *referenced, *([key] if key else [])}
        kept = [original for original in raw.header if original in needed or _is_useful(typed[original])]
        self.typed = {original: typed[original] for original in _most_filled(kept, typed, needed)}
        self.names = self._column_names()

    def _column_names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for original in self.typed:
            words = _without_unit(expanded(original))
            if original == self.key and _UNNAMED.fullmatch(original):
                words = (*self.stem, "number")
            elif original == self.key and (words in {("id",), ("key",), ("code",)} or not words):
                words = (*self.stem, words[0] if words and words != ("key",) else "id")
            elif (
                original in self.references
                and self.typed[original].type == "integer"
                and words[-1] not in {"id", "code", "number", "key"}
            ):
                words = (*words, "id")
            if original == self.key and words[-1:] == ("name",) and _are_codes(self.typed[original]):
                words = (*(words[:-1] or self.stem), "code")
            name = snake(words)
            if name in names.values():
                name = snake(name_words(original))
            while name in names.values() or name in RESERVED:
                name += "_value" if name in RESERVED else "_2"
            names[original] = name
        return names


def _are_codes(column: TypedColumn) -> bool:
    """Short values without spaces, most of them with a digit: a code, whatever the source calls it."""
    known = [str(value) for value in column.values if value is not None]
    return all(len(value) <= 12 and " " not in value for value in known) and sum(
        any(letter.isdigit() for letter in value) for value in known
    ) > 0.5 * len(known)


def _table_names(tables: Sequence[RawTable]) -> dict[str, str]:
    names: dict[str, str] = {}
    for table in tables:
        name = snake(tuple(noun_of(table.name)[1].split()))
        while name in names.values():
            name += "_2"
        names[table.name] = name if name not in RESERVED else f"{name}_list"
    return names


def _is_useful(column: TypedColumn) -> bool:
    known = [value for value in column.values if value is not None]
    if len(set(known)) < 2 or len(known) < 0.02 * len(column.values):
        return False
    return max(len(str(value)) for value in known) <= MAX_TEXT * 5


def _most_filled(kept: list[str], typed: Mapping[str, TypedColumn], needed: set[str]) -> list[str]:
    """At most MAX_COLUMNS columns: the needed ones, then those with the fewest gaps, in the order of the source."""

    def gaps(original: str) -> tuple[bool, int, int]:
        values = typed[original].values
        empty = 10 * sum(value is None for value in values) // len(values)
        return (original not in needed, empty, kept.index(original))

    chosen = set(sorted(kept, key=gaps)[:MAX_COLUMNS])
    return [original for original in kept if original in chosen]


def _agree_on_type(child: _Draft, column: str, parent: _Draft, parent_column: str) -> None:
    """Both ends of a link get one type: text as soon as one of them needs it."""
    if child.typed[column].type == parent.typed[parent_column].type:
        return
    for draft, name in ((child, column), (parent, parent_column)):
        position = draft.raw.header.index(name)
        values = tuple(row[position] for row in draft.raw.rows)
        draft.typed[name] = TypedColumn(type="text", values=values, rule="kept as text, like the key it refers to")


def _finish(draft: _Draft, drafts: Mapping[str, _Draft], links: Sequence[Link], added_in: int) -> Built:
    values: dict[str, tuple[Value, ...]] = {}
    columns: list[Column] = []
    rows = len(draft.raw.rows)
    key = draft.names[draft.key] if draft.key else snake((*draft.stem, "id"))
    if draft.key is None:
        while key in draft.names.values():
            key = f"{key}_row"
        values[key] = tuple(range(1, rows + 1))
        columns.append(
            Column(
                name=key,
                type="integer",
                role="identifier",
                words=phrase(name_words(key)),
                original="position of the row in the source",
                nullable=False,
                distinct=rows,
            )
        )
    for original, typed in draft.typed.items():
        name = draft.names[original]
        role: ColumnRole = (
            "identifier" if name == key else "reference" if original in draft.references else role_of(name, typed)
        )
        known = [value for value in typed.values if value is not None]
        values[name] = typed.values
        columns.append(
            Column(
                name=name,
                type=typed.type,
                role=role,
                words=phrase(name_words(name)),
                nullable=len(known) < rows,
                original=f"{original} ({typed.rule})" if typed.rule else original,
                distinct=len(set(known)),
                unit=_unit(original, typed),
            )
        )
    label = choose_label(columns, values)
    if label and label not in values:  # a person's name in two columns
        first, last = label.split("|")
        label = "full_name" if "full_name" not in values else "whole_name"
        values[label] = tuple(
            " ".join(str(part) for part in pair if part is not None) or None
            for pair in zip(values[first], values[last], strict=True)
        )
        columns.append(
            Column(
                name=label,
                type="text",
                role="label",
                words="full name",
                nullable=None in values[label],
                original=f"{first} and {last}",
                distinct=len(set(values[label]) - {None}),
            )
        )
    columns = [
        _with_role(column, "label") if column.name == label and column.name != key else column for column in columns
    ]
    foreign_keys = tuple(_foreign_key(draft, drafts[link.parent], link) for link in draft.references.values())
    table = Table(
        name=draft.name,
        singular=draft.singular,
        plural=draft.plural,
        columns=tuple(columns),
        primary_key=(key,),
        rows=rows,
        foreign_keys=foreign_keys,
        label=label,
        source=draft.raw.source,
        added_in=added_in,
    )
    return Built(table=table, columns=values)


def _with_role(column: Column, role: ColumnRole) -> Column:
    return replace(column, role=role)


def _foreign_key(draft: _Draft, parent: _Draft, link: Link) -> ForeignKey:
    return ForeignKey(
        column=draft.names[link.column],
        parent=parent.name,
        parent_column=parent.names[link.parent_column],
        integrity=share_found(draft.typed[link.column].values, parent.typed[link.parent_column].values),
        origin=link.origin,
    )


def _unit(original: str, typed: TypedColumn) -> str | None:
    """The unit that the source's own column name states."""
    if typed.clock:
        return "HH:MM"
    bracket = re.search(r"[(\[]([a-zA-Z°%/ ]{1,20})[)\]]", original)
    if bracket:
        return bracket[1].strip().lower()
    return next((unit for unit in name_words(original) if unit in _UNITS), None)


def _without_unit(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a column without the unit behind them, which is recorded by itself: "size in mib" is a size."""
    return words[:-2] if len(words) > 2 and words[-2] == "in" and words[-1] in _UNITS else words
