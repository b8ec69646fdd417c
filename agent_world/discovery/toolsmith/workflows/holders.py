"""Who a record is for: a row of an entity of people, or anybody whose name the caller gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from agent_world.discovery.toolsmith.contract import Out, Param, kind_of
from agent_world.discovery.toolsmith.source import quoted
from agent_world.discovery.toolsmith.view import Entity, View
from agent_world.discovery.toolsmith.words import snake
from agent_world.discovery.toolsmith.workflows.base import words_of
from agent_world.environments.model import Column, ForeignKey, Json, Meaning

HOLDERS = (
    "customer",
    "client",
    "member",
    "user",
    "subscriber",
    "patient",
    "student",
    "passenger",
    "guest",
    "tenant",
    "host",
    "person",
    "people",
    "employee",
    "staff",
)
WORKERS = ("employee", "staff", "technician", "agent", "user", "member", "person", "people")

_NAMES = ("Ana Ruiz", "Bo Lindqvist", "Zoë Ångström", "Tom Okafor", "Iris Novak", "Lea Brandt")
_HINTS = {"string": "str", "integer": "int", "number": "float"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The holder of a record: `entity` is None when a name is all that is kept."""

    name: str
    words: str
    entity: Entity | None = None

    @property
    def names(self) -> dict[str, str]:
        """What templates say about the holder."""
        return {
            "holder": self.name,
            "holder_hint": _HINTS[self.param("").kind],
            "holder_words": self.words,
            "holder_check": self._check(),
        }

    @property
    def tables(self) -> list[str]:
        """The table of its entity, if it has one."""
        return [] if self.entity is None else [self.entity.name]

    @property
    def keys(self) -> set[Json] | None:
        """All keys there are, None when any name will do."""
        return None if self.entity is None else {row[self.entity.key.name] for row in self.entity.rows}

    @property
    def refusals(self) -> list[str]:
        """How a tool refuses a stranger, in words."""
        return [] if self.entity is None else [f"an unknown {self.words} (not_found)"]

    def param(self, table: str) -> Param:
        """The parameter that names the holder in the tools of the workflow table `table`."""
        if self.entity is None:
            return Param(
                name=self.name,
                kind="string",
                words=f"name of the {self.words}",
                meaning=Meaning(kind="text", table=table, column=self.name),
            )
        return Param(
            name=self.name,
            kind=kind_of(self.entity.key),
            words=self.entity.key_words,
            meaning=self.entity.meaning(self.entity.key, "key"),
        )

    def out(self, table: str) -> Out:
        """The result field that shows the holder."""
        param = self.param(table)
        return Out(name=self.name, kind=param.kind, words=param.words, meaning=param.meaning)

    def column(self) -> Column:
        """The column that keeps the holder."""
        if self.entity is None:
            return column(self.name, "text", "text", f"name of the {self.words}")
        return column(self.name, self.entity.key.type, "reference", self.entity.key_words)

    def key(self) -> list[ForeignKey]:
        """The foreign key of the column, if it is one."""
        return [] if self.entity is None else [reference(self.name, self.entity)]

    def examples(self, rng: Random, count: int) -> list[Json]:
        """Different holders to test with."""
        if self.entity is None:
            return rng.sample(_NAMES, count)
        return [row[self.entity.key.name] for row in rng.sample(self.entity.rows, count)]

    def _check(self) -> str:
        if self.entity is None:
            return ""
        table, key = quoted(self.entity.name), quoted(self.entity.key.name)
        return (
            f'if world.db.execute("SELECT 1 FROM {table} WHERE {key} = ?", ({self.name},)).fetchone() is None:\n'
            f'    raise Refused("not_found", f"There is no {self.words} {{{self.name}}}; '
            f'search the {self.entity.many} for the right one.")\n'
        )


def holder_of(view: View, subject: Entity, fallback: str, kinds: Sequence[str] = HOLDERS) -> Holder:
    """Those in the data who can hold a record about `subject`, else anybody by name, called `fallback`."""
    for kind in kinds:
        for entity in view.entities:
            if entity.key and entity.name != subject.name and kind in words_of(entity) and len(entity.rows) >= 5:
                return Holder(name=entity.key_name, words=entity.one, entity=entity)
    return Holder(name=snake(fallback), words=fallback)


def column(name: str, type_: str, role: str, words: str, *, nullable: bool = False) -> Column:
    """A column of a table that starts empty."""
    return Column(name=name, type=type_, role=role, words=words, original="", nullable=nullable, distinct=0)


def reference(name: str, entity: Entity) -> ForeignKey:
    """A foreign key of a workflow table."""
    return ForeignKey(column=name, parent=entity.name, parent_column=entity.key.name, integrity=1.0, origin="declared")
