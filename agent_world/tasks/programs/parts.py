"""What solutions and verifiers are built of: how code over tools reads a row, and how SQL over `D` reads the same.

The two share nothing but the schema, so that an error in one shows against the other.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from agent_world.environments.model import Column, Json, Tool
from agent_world.tasks.catalogue import Catalogue, Finder, Getter, Output
from agent_world.tasks.phrases import Thing, is_plural, number, plain
from agent_world.tasks.saying import field_name

_TRIES = 12
_NUMERIC = ("measure", "money", "rating", "year")
_NAMES_OF_TIME = {"month", "day", "hour", "minute", "second", "week", "zone", "id", "code", "key"}
"""Numbers that name something: nobody asks for the higher month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One row of `D` that an instruction names: by its label, else by its key."""

    table: str
    row: dict[str, Json]
    said: Json
    thing: Thing


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a solution reads one row of `table` given what a person says: find it by name, then read it by key."""

    catalogue: Catalogue
    table: str
    finder: Finder | None
    getter: Getter | None

    @property
    def name(self) -> str:
        """The name of the solution's function for it."""
        return f"read_{field_name(self.catalogue.database.table(self.table).singular)}"

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools it calls."""
        return tuple(part.tool for part in (self.finder, self.getter) if part is not None)

    @property
    def key(self) -> str:
        """The field of what it reads that holds the row's key."""
        if self.getter is not None:
            return self.getter.parameter
        assert self.finder is not None
        return self.finder.key.field

    @property
    def facts(self) -> tuple[Output, ...]:
        """The fields that it reads and that `D` holds in a column of the row or of a row it refers to."""
        outputs = self.getter.facts if self.getter is not None else ()
        return tuple(output for output in outputs if column_sql(self.catalogue, self.table, output) is not None)

    def code(self) -> str:
        """The function ``read_<noun>(call, said)``, which gives the row's facts and its key."""
        noun = self.catalogue.database.table(self.table).singular
        lines = [f"def {self.name}(call, said):", f'    """The facts of one {noun}."""']
        if self.finder is None:
            assert self.getter is not None
            lines.append("    key = said")
        elif self.finder.key.array is None:
            lines.append(f"    key = {self._find()}[{self.finder.key.field!r}]")
        else:
            label = self.finder.label.field if self.finder.label else ""
            lines += [
                f"    hits = {self._find()}[{self.finder.key.array!r}]",
                f"    key = next(hit[{self.finder.key.field!r}] for hit in hits if hit[{label!r}] == said)",
            ]
        if self.getter is None:
            lines.append(f"    return {{{self.key!r}: key}}")
        else:
            read = f"call({self.getter.tool.name!r}, {{{self.getter.parameter!r}: key}})"
            lines.append(f"    return {{**{read}, {self.key!r}: key}}")
        return "\n".join(lines)

    def _find(self) -> str:
        assert self.finder is not None
        return f"call({self.finder.tool.name!r}, {{{self.finder.parameter!r}: said}})"

    def sql(self, fields: Sequence[Output]) -> str:
        """The statement that reads the key and `fields` of the row that is said, in the verifier."""
        table = self.catalogue.database.table(self.table)
        by = table.label if self.finder is not None else table.primary_key[0]
        shown = [f't."{table.primary_key[0]}" AS "{self.key}"']
        shown += [
            f'{column_sql(self.catalogue, self.table, item)} AS "{item.field}"'
            for item in fields
            if item.field != self.key
        ]
        return f'SELECT {", ".join(shown)} FROM "{self.table}" t WHERE t."{by}" = ?'


def accesses(catalogue: Catalogue, *, facts: bool) -> list[Access]:
    """Every way to read rows that people can name; with `facts`, only those that end in a full record."""
    found = []
    for table in catalogue.database.tables:
        if table.rows < 2 or len(table.primary_key) != 1:
            continue
        finders = [f for f in catalogue.finders.get(table.name, []) if f.key.array is None or f.label is not None]
        finders = [f for f in finders if f.key.meaning.column == table.primary_key[0] and _finds_names(catalogue, f)]
        getters = catalogue.getters.get(table.name, [])
        for finder in finders or [None]:
            for getter in getters or [None]:
                if (finder is None and getter is None) or (facts and getter is None):
                    continue
                found.append(Access(catalogue=catalogue, table=table.name, finder=finder, getter=getter))
    return found


def name_only(access: Access) -> Access:
    """`access` cut down to finding the key; a key that is named directly is still read: it may not exist."""
    if access.finder is None:
        return access
    return Access(catalogue=access.catalogue, table=access.table, finder=access.finder, getter=None)


def _finds_names(catalogue: Catalogue, finder: Finder) -> bool:
    """Whether `finder` looks for the label by which rows are named."""
    return finder.tool.inputs[finder.parameter].column == catalogue.database.table(finder.table).label


def draw_member(access: Access, rng: random.Random, taken: Sequence[Member] = ()) -> Member | None:
    """A row that `access` can read and an instruction can name, none of `taken`."""
    catalogue = access.catalogue
    table = catalogue.database.table(access.table)
    for _ in range(_TRIES):
        row = catalogue.facts.draw(table.name, rng)
        if row is None:
            return None
        if any(row == member.row for member in taken):
            continue
        if access.finder is None:
            key = row[table.primary_key[0]]
            return Member(table=table.name, row=row, said=key, thing=Thing(noun=table.singular, code=str(key)))
        name = catalogue.facts.name(table.name, row)
        if name is not None:
            thing = Thing(noun=table.singular, name=name.text, typed=name.typed)
            return Member(table=table.name, row=row, said=name.text, thing=thing)
    return None


def column_sql(catalogue: Catalogue, table: str, output: Output) -> str | None:
    """The SQL expression over row `t` of `table` that a result field shows; None when no column holds it."""
    meaning = output.meaning
    if meaning.table is None or meaning.column is None or meaning.kind not in ("value", "filter", "label", "key"):
        return None
    try:
        catalogue.database.table(meaning.table).column(meaning.column)
    except KeyError:
        return None
    if meaning.table == table:
        return f't."{meaning.column}"'
    link = catalogue.reference(table, meaning.table, output.field)
    if link is None:
        return None
    return f'(SELECT p."{meaning.column}" FROM "{meaning.table}" p WHERE p."{link.parent_column}" = t."{link.column}")'


def measures(catalogue: Catalogue, table: str, outputs: Sequence[Output]) -> list[tuple[Output, Column]]:
    """Those of `outputs` that hold a quantity of rows of `table` by which they can be compared."""
    found = []
    for output in outputs:
        meaning = output.meaning
        if meaning.kind == "value" and meaning.table == table and meaning.column:
            column = catalogue.database.table(table).column(meaning.column)
            names = _NAMES_OF_TIME & set(column.words.lower().split())
            if column.role in _NUMERIC and column.type != "text" and column.distinct >= 4 and not names:
                found.append((output, column))
    return found


def superlative(column: Column, highest: bool) -> str:
    """`highest price`, `earliest year`, `most copies`: follows `the`."""
    degree = _degree(column, highest, ("latest", "earliest"), ("most", "fewest"), ("highest", "lowest"))
    return f"{degree} {plain(column.words)}"


def leads(column: Column, highest: bool, among: int) -> str:
    """`the higher price`, `more copies` of two, `the highest price`, `the most copies` of more: follows `has`."""
    if among > 2:
        return f"the {superlative(column, highest)}"
    article = "" if is_many(column) else "the "
    degree = _degree(column, highest, ("later", "earlier"), ("more", "fewer"), ("higher", "lower"))
    return f"{article}{degree} {plain(column.words)}"


def reaching(column: Column, bound: Json) -> str:
    """`whose price is at least 3`, `whose year is 1990 or later`."""
    verb = "are" if is_many(column) else "is"
    if column.role in ("year", "date", "clock"):
        return f"whose {plain(column.words)} {verb} {number(bound)} or later"
    return f"whose {plain(column.words)} {verb} at least {number(bound)}"


def _degree(column: Column, highest: bool, of_time: Sequence[str], of_many: Sequence[str], else_: Sequence[str]) -> str:
    words = of_time if column.role in ("year", "date", "clock") else of_many if is_many(column) else else_
    return words[0] if highest else words[1]


def is_many(column: Column) -> bool:
    """Whether a quantity is counted and so said in the plural: `the copies are`, `the most copies`."""
    return column.role == "measure" and column.type == "integer" and is_plural(plain(column.words))
