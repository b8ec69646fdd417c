"""What the author sees of a database: entities with rows, keys, labels and links, and the fields they can show."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent_world.discovery.structure import RESERVED
from agent_world.discovery.toolsmith.words import mark, snake
from agent_world.environments.model import SQLITE_FILE, Column, Database, ForeignKey, Json, Meaning, Table

Row = Mapping[str, Json]

_GENERIC = {"id", "pk", "key", "code", "name", "value", "number", "symbol", "abbreviation"}
_REFERENCE_ENDING = re.compile(r"_(id|code|key|pk|number|no|ident)$")
_SAYS_WHAT_IT_IS = re.compile(r"(^|_)(id|code|key|pk|number|no|ident|name|symbol|abbreviation|sign|zip|post)$")
_SHORT_CODE = re.compile(r"[A-Z0-9-]{1,8}")
_CODES = 0.98
_DIMENSION_ROWS = 40
_LABEL_SHARE = 0.3

LONG_TEXT = 60
"""A column with a longer text than this is shown by no tool, unless it names the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A foreign key of an entity, with the entity it leads to and the rows of that by the value that names them."""

    column: Column
    key: ForeignKey
    parent: Entity
    targets: Mapping[Json, Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One table of records as the author sees it. `key` is set for a single-column primary key only.

    `rows` are the source rows in key order; `wide` names the columns whose values are too long for a list.
    """

    table: Table
    rows: tuple[Row, ...]
    key: Column | None
    label: Column | None
    links: tuple[Link, ...]
    wide: frozenset[str]

    @property
    def name(self) -> str:
        """The name of its table."""
        return self.table.name

    @property
    def one(self) -> str:
        """One of them in words."""
        return self.table.singular

    @property
    def many(self) -> str:
        """Many of them in words."""
        return self.table.plural

    @property
    def key_name(self) -> str:
        """The public name of the key: the column's own, or with the entity before it when it says nothing."""
        assert self.key is not None
        return snake(f"{self.one} {_own(self.key.name)}" if self.key.name in _GENERIC else self.key.name)

    @property
    def key_words(self) -> str:
        """How a person says the key."""
        assert self.key is not None
        if self.key.name in _GENERIC:
            return f"{self.one} {_own(self.key.name)}"
        rest = _REFERENCE_ENDING.sub("", self.key.name).replace("_", " ")
        named_for_it = rest in {self.one, self.one.removesuffix(" entry")}
        return self.key.words if named_for_it else f"{self.key.words} of the {self.one}"

    @property
    def is_dimension(self) -> bool:
        """A small table that only names the values of a category, so that its label stands for its row."""
        return (
            self.key is not None
            and self.label is not None
            and len(self.rows) <= _DIMENSION_ROWS
            and len(self.table.columns) <= 3
            and len(set(self.values(self.label))) == len(self.rows)
            and not self.links
        )

    def values(self, column: Column) -> list[Json]:
        """All values of `column` that are set, in row order."""
        return [row[column.name] for row in self.rows if row[column.name] is not None]

    def link(self, column: str) -> Link | None:
        """The foreign key on `column`, if it has one."""
        return next((link for link in self.links if link.column.name == column), None)

    def with_roles(self, *roles: str) -> list[Column]:
        """Columns of these roles, none of them the key, the label or a foreign key, in order of `roles`."""
        skipped = {
            self.key and self.key.name,
            self.label and self.label.name,
            *(link.column.name for link in self.links),
        }
        return [c for role in roles for c in self.table.columns if c.role == role and c.name not in skipped]

    def meaning(self, column: Column, kind: str | None = None) -> Meaning:
        """The meaning of a value of `column`; that of a foreign key is the key it refers to."""
        link = self.link(column.name)
        if link and (kind is None or kind == "key"):
            return Meaning(kind="key", table=link.parent.name, column=link.key.parent_column)
        if kind is None:
            kind = "value"
            if self.key and column.name == self.key.name:
                kind = "key"
            elif self.label and column.name == self.label.name:
                kind = "label"
            elif column.role in {"category", "flag"}:
                kind = "filter"
        return Meaning(kind=kind, table=self.name, column=column.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field that a tool shows of an entity: a column of its own, or one of the parent that `via` leads to."""

    name: str
    owner: Entity
    column: Column
    meaning: Meaning
    words: str
    via: Link | None = None

    @property
    def nullable(self) -> bool:
        """Whether it may show nothing."""
        if self.via is None:
            return self.column.nullable
        return self.column.nullable or self.via.column.nullable or self.via.key.integrity < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All record tables of a database, in its order."""

    database: Database
    entities: tuple[Entity, ...]

    def entity(self, name: str) -> Entity | None:
        """The entity of this name, if there is one."""
        return next((entity for entity in self.entities if entity.name == name), None)

    def children(self, parent: Entity) -> list[tuple[Entity, Link]]:
        """Entities that refer to `parent`, with the key they do it by."""
        return [(e, link) for e in self.entities for link in e.links if link.parent.name == parent.name]


def view_of(database: Database, files: Mapping[str, bytes]) -> View:
    """Read the rows of `database` once. Tables of a workflow are left out: they hold nothing yet."""
    tables = [_in_natural_order(table) for table in database.tables if table.workflow is None]
    rows = source_rows(files, tables)
    named = [_with_codes_named(table, rows[table.name]) for table in tables]
    bare = {table.name: _entity(table, rows[table.name], ()) for table in named}
    linked = {name: replace(entity, links=_links(entity, bare)) for name, entity in bare.items()}
    # Once more, so that parents know their own links: one step up is all that tools show.
    entities = tuple(replace(entity, links=_links(entity, linked)) for entity in linked.values())
    return View(database=database, entities=entities)


def source_rows(files: Mapping[str, bytes], tables: Iterable[Table]) -> dict[str, tuple[Row, ...]]:
    """The rows of each table in key order, as plain dictionaries."""
    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    db.deserialize(files[SQLITE_FILE])
    found = {}
    for table in tables:
        rows = [dict(row) for row in db.execute(f'SELECT * FROM "{table.name}"')]
        found[table.name] = tuple(sorted(rows, key=lambda row: _key_order(row, table.primary_key)))
    db.close()
    return found


def own_field(entity: Entity, column: Column) -> Field:
    """`column` of `entity` itself, under its public name."""
    if entity.key and column.name == entity.key.name:
        name, words = entity.key_name, entity.key_words
    else:
        name, words = snake(column.name), column.words
        link = entity.link(column.name)
        if column.role == "flag":
            words = f"whether {mark(column.name)}"
        elif column.role == "code" and words == entity.one:  # a flight is no flight of its own but has a number
            words = f"{words} number"
        elif link and link.parent.key and link.parent.label and not _REFERENCE_ENDING.search(column.name):
            words = _key_of_parent(link)
    return Field(name=name, owner=entity, column=column, meaning=entity.meaning(column), words=words)


def parent_field(entity: Entity, link: Link) -> Field | None:
    """The label of the row that `link` leads to, such as `album` beside `album_id`; None where it has none.

    A column that is named like the key it refers to says nothing of its own: the parent's noun names the field then.
    """
    label = link.parent.label
    if label is None or link.parent.key is None:
        return None
    base = _REFERENCE_ENDING.sub("", link.column.name)
    says_nothing = link.column.name == link.key.parent_column or base in _GENERIC
    said = link.parent.one if says_nothing else base.replace("_", " ")
    taken = any(column.name == snake(said) for column in entity.table.columns)
    name = snake(f"{said} {label.name}" if taken else said)
    words = said if link.parent.is_dimension else f"{label.words} of the {said}"
    return Field(name=name, owner=entity, column=label, meaning=link.parent.meaning(label), words=words, via=link)


def _key_of_parent(link: Link) -> str:
    """How a person says what a foreign key holds: "faa code of the destination", but "series id"."""
    assert link.parent.key is not None
    key, said = link.parent.key.words, link.column.words
    if link.column.name in _GENERIC:
        return link.parent.key_words
    return key if key.startswith(f"{said} ") or key == said else f"{key} of the {said}"


def _in_natural_order(table: Table) -> Table:
    """A table whose columns are said as they are spelled: descriptions are read by those who also see the names."""
    return replace(table, columns=tuple(replace(c, words=_spelled(c.name)) for c in table.columns))


def _spelled(name: str) -> str:
    """The words of a column name, without what was added to keep it clear of SQL."""
    plain = name.removesuffix("_value")
    return (plain if plain in RESERVED else name).replace("_", " ")


def _own(key: str) -> str:
    return "id" if key == "pk" else key


def _with_codes_named(table: Table, rows: Sequence[Row]) -> Table:
    """A table in which a column of codes is said to be one: the "iata code", not the "iata", of an airport."""

    def said(column: Column) -> Column:
        values = [row[column.name] for row in rows if row[column.name] is not None]
        if (
            column.type == "text"
            and column.role in {"code", "identifier"}
            and column.name not in _GENERIC
            and not _SAYS_WHAT_IT_IS.search(column.name)
            and sum(bool(_SHORT_CODE.fullmatch(str(value))) for value in values) > _CODES * len(values)
        ):
            return replace(column, words=f"{column.words} code")
        return column

    return replace(table, columns=tuple(map(said, table.columns)))


def _entity(table: Table, rows: tuple[Row, ...], links: tuple[Link, ...]) -> Entity:
    key = table.column(table.primary_key[0]) if len(table.primary_key) == 1 else None
    if key is not None and any(row[key.name] is None for row in rows):
        key = None  # a key that is missing somewhere names nothing
    label = table.column(table.label) if table.label else None
    if label is not None and (label == key or label.distinct < _LABEL_SHARE * len(rows)):
        label = None  # what names many rows names none of them
    wide = {
        column.name
        for column in table.columns
        if any(isinstance(row[column.name], str) and len(row[column.name]) > LONG_TEXT for row in rows)
    }
    return Entity(table=table, rows=rows, key=key, label=label, links=links, wide=frozenset(wide))


def _links(entity: Entity, entities: Mapping[str, Entity]) -> tuple[Link, ...]:
    return tuple(
        Link(
            column=entity.table.column(key.column),
            key=key,
            parent=entities[key.parent],
            targets={row[key.parent_column]: row for row in reversed(entities[key.parent].rows)},
        )
        for key in entity.table.foreign_keys
        if key.parent in entities
    )


def _key_order(row: Row, key: tuple[str, ...]) -> tuple[tuple[bool, bool, Json], ...]:
    """A sort key that orders numbers before texts and nulls first, as SQLite does."""
    values = [row[name] for name in key] if key else list(row.values())
    return tuple((value is not None, isinstance(value, str), value if value is not None else 0) for value in values)
