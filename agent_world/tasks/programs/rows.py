"""Several rows of one table that an instruction names: drawing them, saying them, reading them by code and by SQL."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from agent_world.environments.model import Column, Json, Meaning
from agent_world.tasks.catalogue import Output
from agent_world.tasks.phrases import listed, quote
from agent_world.tasks.programs.draft import Bench
from agent_world.tasks.programs.parts import Access, Member, draw_member, measures
from agent_world.tasks.saying import fact_words, schema_of, with_words

Drawn = tuple[Access, list[Member], Output, Column]
"""How rows are read, which they are, and the fact by which they are told apart, with its column."""


def draw_rows(bench: Bench, rng: random.Random, count: int, access: Access | None = None) -> Drawn | None:
    """`count` rows and a quantity in which no two of them are equal."""
    access = access or bench.access(rng)
    quantities = measures(bench.catalogue, access.table, access.facts) if access else []
    if access is None or not quantities:
        return None
    output, column = rng.choice(quantities)
    members: list[Member] = []
    for _ in range(4 * count):
        member = draw_member(access, rng, members)
        value = member.row[column.name] if member else None
        if member is not None and value is not None and all(value != other.row[column.name] for other in members):
            members.append(member)
        if len(members) == count:
            return access, members, output, column
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """A fact that rows may share: how a solution reads it, its words, and a value of it."""

    output: Output
    words: str
    value: Json

    @property
    def those(self) -> str:
        """`whose genre is "Rock"`, `marked deprecated`: follows the noun."""
        if isinstance(self.value, bool):
            return f"{'' if self.value else 'not '}marked {self.words}"
        return f"whose {self.words} is {quote(self.value)}"

    def of(self, who: str) -> str:
        """`the genre of "Blue Train" is "Jazz"`, `"Blue Train" is marked live`: a clause about `who`."""
        if isinstance(self.value, bool):
            return f"{who} is {self.those}"
        return f"the {self.words} of {who} is {quote(self.value)}"

    @property
    def code(self) -> str:
        """The comparison, as it follows the row in code."""
        return f"[{self.output.field!r}] == {self.value!r}"


def draw_shared(
    bench: Bench, rng: random.Random, count: int, access: Access | None = None
) -> tuple[Access, list[Member], Trait, list[bool]] | None:
    """`count` rows and a trait that some of them have and some have not; and which have it."""
    access = access or bench.access(rng)
    traits = _traits(access) if access else []
    if access is None or not traits:
        return None
    output, words = rng.choice(traits)
    members: list[Member] = []
    values: list[Json] = []
    for _ in range(4 * count):
        member = draw_member(access, rng, members)
        value = value_of(access, member, output) if member else None
        if member is not None and _is_sayable(value):
            members.append(member)
            values.append(value)
        if len(members) == count:
            trait = Trait(output=output, words=words, value=rng.choice(values))
            have = [value == trait.value for value in values]
            return (access, members, trait, have) if not all(have) else None
    return None


def value_of(access: Access, member: Member, output: Output) -> Json:
    """What `access` reads in `output` of a row, by SQL."""
    row = access.catalogue.facts.db.execute(access.sql([output]), (member.said,)).fetchone()
    value = row[output.field]
    return bool(value) if value is not None and output.meaning in _flags(access) else value


def named(access: Access, members: Sequence[Member]) -> str:
    """Several rows as a person lists them: `the albums "A" and "B"`, `flights 12, 40 and 7`."""
    plural = access.catalogue.database.table(access.table).plural
    if access.finder is None:
        return f"{plural} {listed(str(member.said) for member in members)}"
    return f"the {plural} {listed(quote(member.said) for member in members)}"


def name_schema(access: Access, noun: str) -> dict[str, Json]:
    """The schema of an answer field that names a row as the instruction does."""
    table = access.catalogue.database.table(access.table)
    if access.finder is not None and table.label is not None:
        return {"type": "string", "description": f"{table.column(table.label).words} of the {noun}"}
    kind = {"text": "string", "integer": "integer", "real": "number"}[table.column(table.primary_key[0]).type]
    return {"type": kind, "description": f"which {noun} it is, as it was named"}


def fact_schema(access: Access, output: Output, words: str) -> dict[str, Json]:
    """The schema of an answer field that holds a fact which `access` reads."""
    assert access.getter is not None
    return with_words(schema_of(access.catalogue, access.getter.tool, output), words)


def read_by_sql(access: Access, members: Sequence[Member], fields: Sequence[Output]) -> list[str]:
    """Statements of the verifier that leave pairs of what was said and the row in `found`."""
    distinct = list({item.field: item for item in fields}.values())
    said = [member.said for member in members]
    return [
        f"statement = {access.sql(distinct)!r}",
        f"found = [(said, db.execute(statement, (said,)).fetchone()) for said in {said!r}]",
    ]


def _traits(access: Access) -> list[tuple[Output, str]]:
    """Categories and marks of the row itself, and the names of rows it refers to."""
    catalogue, found = access.catalogue, []
    label = catalogue.database.table(access.table).label
    for output in access.facts:
        meaning = output.meaning
        if meaning.table is None or meaning.column is None or access.getter is None:
            continue
        column = catalogue.database.table(meaning.table).column(meaning.column)
        is_own = meaning.table == access.table
        if (is_own and column.role in ("category", "flag") and column.name != label) or (
            not is_own and meaning.kind == "label"
        ):
            found.append((output, fact_words(catalogue, access.getter.tool, output, access.table)))
    return found


def _flags(access: Access) -> list[Meaning]:
    table = access.catalogue.database.table(access.table)
    flags = {column.name for column in table.columns if column.role == "flag"}
    return [item.meaning for item in access.facts if item.meaning.table == table.name and item.meaning.column in flags]


def _is_sayable(value: Json) -> bool:
    return isinstance(value, bool) or (
        isinstance(value, str) and 0 < len(value) <= 48 and not set('"\\\n') & set(value)
    )
