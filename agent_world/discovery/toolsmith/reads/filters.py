"""Conditions that a caller may set on a list, each with its SQL and its plain-Python twin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent_world.discovery.toolsmith.answers import reads as answers
from agent_world.discovery.toolsmith.contract import Param, in_unit, kind_of
from agent_world.discovery.toolsmith.fields import enum_values
from agent_world.discovery.toolsmith.source import column_of
from agent_world.discovery.toolsmith.view import Entity, Field, Link, Row
from agent_world.discovery.toolsmith.words import listed, mark, snake
from agent_world.environments.model import Json, Meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A condition on `field`: it equals what the caller gives, or is at least that."""

    field: Field
    how: Literal["equals", "at_least"]
    param: Param

    @property
    def said(self) -> str:
        """What it narrows by."""
        return self.field.words if self.how == "equals" else f"least {self.field.words}"

    def sql(self, links: Sequence[Link]) -> str:
        """The condition in SQL; one that the caller did not set holds for all rows."""
        column, name = column_of(self.field, links), f":{self.param.name}"
        if self.how == "at_least":
            held = f"{column} >= {name}"
        elif self.param.kind == "string" and not self.param.enum:
            held = f"fold({column}) = fold({name})"
        else:
            held = f"{column} = {name}"
        return held if self.param.required else f"({name} IS NULL OR {held})"

    def check(self, wanted: Json) -> Callable[[Row], bool]:
        """The condition over a source row."""
        if self.how == "at_least":
            return answers.at_least(self.field, wanted)
        return answers.equals(self.field, wanted, exactly=bool(self.param.enum))


def equals(entity: Entity, field: Field, *, required: bool = False) -> Filter:
    """A filter by a value of `field`."""
    if field.via is not None:
        meaning = Meaning(kind="filter", table=field.via.parent.name, column=field.column.name)
    else:
        meaning = entity.meaning(field.column, None if entity.link(field.column.name) else "filter")
    values = enum_values(entity, field)
    if field.column.role == "flag":
        words = f"true: only {entity.many} marked {mark(field.column.name)}; false: only the others"
    else:
        words = f"only {entity.many} with this {field.words}"
    if not values and kind_of(field.column) == "string":
        known = {str(value) for row in entity.rows if (value := answers.value_of(row, field)) is not None}
        shown = sorted(known, key=lambda value: (len(value), value))
        words += f", such as {listed(sorted(shown[:3]), 'or')}"
    return Filter(
        field=field,
        how="equals",
        param=Param(
            name=field.name, kind=kind_of(field.column), words=words, meaning=meaning, required=required, enum=values
        ),
    )


def at_least(entity: Entity, field: Field) -> Filter:
    """A filter by a lower bound of `field`."""
    year = field.column.role == "year"
    name = snake(f"since {field.name}" if year else f"min {field.name}")
    words = (
        f"only {entity.many} of this {field.words} or later"
        if year
        else (f"only {entity.many} with a {in_unit(field.column, field.words)} of at least this")
    )
    return Filter(
        field=field,
        how="at_least",
        param=Param(
            name=name,
            kind=kind_of(field.column),
            words=words,
            required=False,
            meaning=Meaning(kind="threshold", table=entity.name, column=field.column.name),
        ),
    )


def bindings(filters: Iterable[Filter]) -> dict[str, str]:
    """The SQL parameters of `filters` and the Python expressions they get."""
    return {f.param.name: f.param.name for f in filters}


def rows_with(entity: Entity, filters: Iterable[Filter], arguments: Mapping[str, Json]) -> list[Row]:
    """Source rows that pass those of `filters` that `arguments` sets."""
    return answers.matching(entity, [f.check(arguments[f.param.name]) for f in filters if f.param.name in arguments])


def value_in(row: Row, chosen: Filter) -> Json:
    """An argument for `chosen` that `row` passes; None when the row has no value there."""
    return answers.value_of(row, chosen.field)
