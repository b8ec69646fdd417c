"""What a plan is made of: queries, filters, orders, and the constraints' places in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_world.environments.model import Json
from agent_world.solver.fields import Field, Parameter
from agent_world.solver.index import IndexedTool
from agent_world.solver.model import Operator

Detail = tuple[IndexedTool, Parameter, Field]
"""A tool that tells more about each row, the parameter it takes, and the field of the row that goes there."""

Blame = tuple[str, str, str]
"""A mention, the tool and the parameter or field it was taken to: what to do without when it led nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a row a value is found: a field of the row, or of the result of a detail tool."""

    field: Field
    detail: Detail | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Rows that are kept: those whose value at `place` compares so with `value`; "same" compares names."""

    place: Place
    operator: Operator | str
    value: Json
    upper: Json = None
    blame: Blame | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The `count` rows with the largest (or smallest) value at `place`."""

    place: Place
    more: bool
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One way to get rows: call `tool` with `given` values and with what the `fed` queries find.

    `spread` are parameters that run over several values. With `sorted` the rows come in the order that `order` asks
    for. `wanted` are names that a row should carry exactly; `marks` tell which constraints chose the rows, `origins`
    which of them each argument comes from.
    """

    tool: IndexedTool
    given: Mapping[str, Json] = field(default_factory=dict)
    fed: Mapping[str, tuple[Query, Field]] = field(default_factory=dict)
    spread: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    keeps: tuple[Keep, ...] = ()
    order: Order | None = None
    sorted: bool = False
    wanted: tuple[str, ...] = ()
    blame: tuple[Blame, ...] = ()
    marks: frozenset[str] = frozenset()
    origins: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def details(self) -> list[Detail]:
        """The detail tools that filters and order need."""
        places = [keep.place for keep in self.keeps] + ([self.order.place] if self.order else [])
        found: dict[tuple[str, str, str], Detail] = {}
        for place in places:
            if place.detail is not None:
                tool, parameter, given = place.detail
                found[tool.name, parameter.name, given.name] = place.detail
        return list(found.values())

    def calls(self) -> int:
        """How many different calls it needs at least."""
        return 1 + sum(query.calls() for query, _ in self.fed.values()) + len(self.details())

    def blames(self) -> tuple[Blame, ...]:
        """All assignments of names in it and in the queries that feed it."""
        inner = (one for query, _ in self.fed.values() for one in query.blames())
        return (*self.blame, *(keep.blame for keep in self.keeps if keep.blame is not None), *inner)
