"""What a solution does to the state: a writing call about a row of `D`, and what must be opened or looked up for it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent_world.environments.model import Json, Meaning, Tool
from agent_world.environments.session import Session
from agent_world.tasks.catalogue import Catalogue, outputs
from agent_world.tasks.graph import required
from agent_world.tasks.phrases import Thing, capital
from agent_world.tasks.programs.parts import Access, Member, draw_member, name_only
from agent_world.tasks.requests import act
from agent_world.tasks.saying import Given, field_name, said, schema_of, with_words
from agent_world.tasks.values import value_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A writing tool about a row of `table`, whose key `subject` takes.

    Where the call goes into a record that must be opened first, `opening` makes it and `inside` takes its id.
    """

    tool: Tool
    table: str
    subject: str
    opening: Tool | None = None
    inside: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A call but for what its subject or its record gives: fixed values, and rows to be found by name."""

    tool: Tool
    fixed: dict[str, Json]
    holders: dict[str, tuple[Access, Member]]

    def given(self, **things: Thing) -> dict[str, Given]:
        """Its arguments as a person says them; `things` stand for the parameters that are left."""
        found = {}
        for parameter, meaning in self.tool.inputs.items():
            if parameter in things:
                found[parameter] = Given(value=None, meaning=meaning, thing=things[parameter])
            elif parameter in self.holders:
                member = self.holders[parameter][1]
                found[parameter] = Given(value=member.said, meaning=meaning, thing=member.thing)
            elif parameter in self.fixed:
                found[parameter] = Given(value=self.fixed[parameter], meaning=meaning)
        return found

    def code(self, **expressions: str) -> str:
        """The call as an expression; `expressions` give the parameters that are left."""
        parts = [f"{parameter!r}: {expression}" for parameter, expression in expressions.items()]
        parts += [f"{parameter!r}: holder_{parameter}" for parameter in self.holders]
        parts += [f"{parameter!r}: {value!r}" for parameter, value in self.fixed.items()]
        return f"call({self.tool.name!r}, {{{', '.join(parts)}}})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """A way to write with everything drawn but its subject. `record` is the noun of what is opened first."""

    catalogue: Catalogue
    way: Way
    main: Filled
    opening: Filled | None
    record: str

    @property
    def holders(self) -> list[tuple[str, Access, Member]]:
        """The rows that it needs beside its subject: parameter, how to find them, which."""
        parts = [self.main] if self.opening is None else [self.opening, self.main]
        return [(name, access, member) for part in parts for name, (access, member) in part.holders.items()]

    @property
    def functions(self) -> list[str]:
        """What the solution needs to find those rows."""
        return [access.code() for _, access, _ in self.holders]

    def prepare(self) -> list[str]:
        """Statements that find those rows and open the record."""
        lines = [
            f"holder_{name} = {access.name}(call, {member.said!r})[{access.key!r}]"
            for name, access, member in self.holders
        ]
        if self.opening is not None:
            lines.append(f"opened = {self.opening.code()}")
        return lines

    def code(self, subject: str) -> str:
        """The call as an expression, about the key that the expression `subject` gives."""
        expressions = {self.way.subject: subject}
        if self.way.inside is not None:
            expressions[self.way.inside] = f"opened[{self._minted!r}]"
        return self.main.code(**expressions)

    def attempt(self, session: Session, row: Mapping[str, Json]) -> bool | None:
        """Do it about `row` of `D`, keys taken from the records: whether it went through, None when it broke."""
        values: dict[str, Json] = {}
        if self.opening is not None and self.way.inside is not None:
            opened = session.call(self.opening.tool.name, self._direct(self.opening))
            if opened.status != "ok":
                return None
            values[self.way.inside] = opened.value[self._minted]
        meaning = self.main.tool.inputs[self.way.subject]
        values[self.way.subject] = row.get(meaning.column or "")
        status = session.call(self.main.tool.name, self._direct(self.main) | values).status
        return {"ok": True, "refused": False}.get(status)

    def _direct(self, part: Filled) -> dict[str, Json]:
        held = {name: member.row.get(part.tool.inputs[name].column or "") for name, (_, member) in part.holders.items()}
        return part.fixed | held

    def say(self, thing: Thing) -> str:
        """The whole request in the imperative, about `thing`."""
        if self.opening is None or self.way.inside is None:
            return self.once(thing)
        return f"{act(self.opening.tool, self.opening.given()).phrase} and {self.once(thing)}"

    def apart(self, *things: Thing) -> tuple[str, list[str]]:
        """A sentence for the opening (empty where nothing is opened), and the request about each of `things`."""
        opening = f"{capital(act(self.opening.tool, self.opening.given()).phrase)}. " if self.opening else ""
        return opening, [self.once(thing) for thing in things]

    def once(self, thing: Thing) -> str:
        """The request without the opening, which was said before."""
        things = {self.way.subject: thing}
        if self.way.inside is not None:
            things[self.way.inside] = Thing(noun=self.record, made=True)
        return act(self.main.tool, self.main.given(**things)).phrase

    @property
    def _minted(self) -> str:
        assert self.opening is not None
        return next(path for path, meaning in self.opening.tool.outputs.items() if meaning.kind == "minted")

    @property
    def outcome(self) -> Outcome | None:
        """What tells how it went: the status, else a figure such as the total so far."""
        for kind in ("status", "aggregate"):
            for output in outputs(self.main.tool):
                if output.meaning.kind == kind and output.array is None:
                    words = "status" if kind == "status" else said(self.main.tool, output)
                    schema = with_words(schema_of(self.catalogue, self.main.tool, output), f"the {words} after that")
                    return Outcome(field=field_name(words), words=words, schema=schema, code=f"made[{output.field!r}]")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A fact of a writing call's result (held in `made`) that an answer may report."""

    field: str
    words: str
    schema: dict[str, Json]
    code: str


def ways(catalogue: Catalogue) -> Iterator[Way]:
    """Every way to write about a row that `D` holds."""
    for tool in catalogue.writers:
        needed = [(name, tool.inputs[name]) for name in required(tool) if name in tool.inputs]
        subject = next(((name, m.table) for name, m in needed if m.kind == "key" and _holds(catalogue, m)), None)
        records = [(name, m) for name, m in needed if m.kind == "key" and not _holds(catalogue, m)]
        if subject is None or subject[1] is None:
            continue
        if any(meaning.kind == "minted" for meaning in tool.outputs.values()) and not records:
            yield Way(tool=tool, table=subject[1], subject=subject[0])
        elif len(records) == 1:
            for opening in catalogue.writers:
                if _opens(opening, records[0][1]):
                    yield Way(tool=tool, table=subject[1], subject=subject[0], opening=opening, inside=records[0][0])


def draw_deed(
    catalogue: Catalogue,
    way: Way,
    readable: Sequence[Access],
    rng: random.Random,
    *,
    about: Mapping[str, Json] | None = None,
) -> Deed | None:
    """A deed of that way; None when a parameter cannot be filled. Filters take their values from the row `about`."""
    rows = {way.table: dict(about)} if about is not None else {}
    opening = None
    if way.opening is not None:
        opening = _filled(catalogue, way.opening, (), readable, rows, rng)
        if opening is None:
            return None
    left = tuple(name for name in (way.subject, way.inside) if name is not None)
    main = _filled(catalogue, way.tool, left, readable, rows, rng)
    if main is None:
        return None
    record = catalogue.database.table(way.tool.inputs[way.inside].table or "").singular if way.inside else ""
    deed = Deed(catalogue=catalogue, way=way, main=main, opening=opening, record=record)
    clash = any(access.table == way.table for _, access, _ in deed.holders)
    return None if clash else deed


def _filled(
    catalogue: Catalogue,
    tool: Tool,
    left: Sequence[str],
    readable: Sequence[Access],
    rows: dict[str, dict[str, Json]],
    rng: random.Random,
) -> Filled | None:
    fixed: dict[str, Json] = {}
    holders: dict[str, tuple[Access, Member]] = {}
    for parameter in required(tool):
        meaning = tool.inputs.get(parameter)
        if parameter in left or meaning is None:
            if meaning is None:
                return None
            continue
        if meaning.kind == "key":
            access = next((name_only(item) for item in readable if item.table == meaning.table), None)
            member = draw_member(access, rng) if access else None
            if access is None or member is None:
                return None
            holders[parameter] = (access, member)
        else:
            value = value_for(catalogue, tool, parameter, rows, rng)
            if value is None:
                return None
            fixed[parameter] = value
    return Filled(tool=tool, fixed=fixed, holders=holders)


def _holds(catalogue: Catalogue, meaning: Meaning) -> bool:
    return meaning.table is not None and catalogue.database.table(meaning.table).rows > 0


def _opens(tool: Tool, meaning: Meaning) -> bool:
    """Whether `tool` makes the record that `meaning` is the key of, without needing one made before."""
    makes = any(
        m.kind == "minted" and (m.table, m.column) == (meaning.table, meaning.column) for m in tool.outputs.values()
    )
    return makes and all(
        tool.inputs[name].table != meaning.table or tool.inputs[name].kind != "key" for name in required(tool)
    )
