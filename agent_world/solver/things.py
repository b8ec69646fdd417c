"""Things as they were seen: what they are called, their facts, and what of them goes into further calls."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step
from agent_world.solver.fields import Field, Parameter
from agent_world.solver.fitting import FITS, likeness
from agent_world.solver.index import IndexedTool, Toolbox
from agent_world.solver.kinds import Kind, Kinds, kinds_of
from agent_world.solver.places import LABELS
from agent_world.solver.query import Query
from agent_world.solver.run import Row, Runner
from agent_world.solver.terms import Words


class UnclearError(Exception):
    """A term that cannot be worked out here."""


@dataclass(slots=True, eq=False)
class Thing:
    """One thing: the records that were seen of it, and how it was named.

    `fresh` counts the changes that had been made when the records were read.
    """

    kind: Kind | None
    pieces: list[tuple[IndexedTool, Row]] = field(default_factory=list)
    said: Json = None
    fresh: int = 0


Found = Generator[Step, Observation, list[Thing]]
Value = Generator[Step, Observation, Json]


@dataclass(slots=True)
class Facts:
    """Finds facts of things over one runner."""

    box: Toolbox
    runner: Runner

    @property
    def kinds(self) -> Kinds:
        """The kinds of things of the environment."""
        return kinds_of(self.box)

    def called(self, thing: Thing) -> Json:
        """What a thing is called: the name that was given, or else its label, or else its key."""
        return thing.said if thing.said is not None else self.label(thing)

    def label(self, thing: Thing) -> Json:
        """The name of a thing in its records, by which it is searched for, or else its key.

        Raises:
            UnclearError: no record of it tells.
        """
        searched = {parameter.name for _, parameter in thing.kind.searches} if thing.kind is not None else set()
        shown = [
            (one, row[one.name])
            for tool, row in thing.pieces
            for one in tool.fields
            if row.get(one.name) is not None and (one.item or not tool.items)
        ]
        for chosen in (
            [value for one, value in shown if one.name in searched],
            [value for one, value in shown if LABELS & set(one.names) and isinstance(value, str) and not one.key],
            [value for _, value in shown],
        ):
            if chosen:
                return chosen[0]
        raise UnclearError("nothing tells its name")

    def fact(self, thing: Thing, words: Words, *, missing: bool = False) -> Value:
        """A fact of a thing, from what was seen of it or by looking it up; None when `missing` allows for it.

        Raises:
            UnclearError: no tool tells it.
            SetbackError: the environment refused.
        """
        seen = max(
            (
                (likeness(self.box, words, one), -at, tool, row, one)
                for at, (tool, row) in enumerate(reversed(thing.pieces))
                for one in tool.fields
                if one.name in row and (one.item or not tool.items)
            ),
            key=lambda entry: entry[:2],
            default=None,
        )
        stale = thing.fresh != self.runner.changes
        looked: list[tuple[float, int, IndexedTool, Parameter, Json, Field]] = []
        for at, (tool, parameter) in enumerate(self._records(thing)):
            argument = self.supplied(thing, tool, parameter)
            fields = [(likeness(self.box, words, one), one) for one in tool.fields]
            score, one = max(fields, key=lambda pair: pair[0], default=(0.0, None))
            if argument is not None and one is not None and score > FITS:
                looked.append((score, -at, tool, parameter, argument, one))
        best = max(looked, key=lambda entry: entry[:2], default=None)
        if seen is not None and seen[0] > FITS and not (stale and best) and (best is None or seen[0] >= best[0] - 0.02):
            value = seen[3][seen[4].name]
        elif best is not None:
            _, _, tool, parameter, argument, one = best
            record = yield from self._record(tool, parameter, argument)
            thing.pieces.append((tool, record))
            value = record.get(one.name)
        else:
            value = yield from self._belonging(thing, words)
        if isinstance(value, list | dict) or (value is None and not missing):
            raise UnclearError(f"no single {' '.join(words)}")
        return value

    def facts(self, things: Sequence[Thing], words: Words) -> Generator[Step, Observation, list[Json]]:
        """A fact of each thing, without those that have none.

        Raises:
            UnclearError, SetbackError: as `fact`.
        """
        found: list[Json] = []
        for thing in things:
            value = yield from self.fact(thing, words, missing=True)
            found += [value] if value is not None else []
        return found

    def supplied(self, thing: Thing, tool: IndexedTool, parameter: Parameter) -> Json:
        """What of a thing goes to a parameter; None when nothing that was seen of it does."""
        best: tuple[float, int, Json] | None = None
        links = self.box.links.get((tool.name, parameter.name), ())
        for at, (source, row) in enumerate(thing.pieces):
            for link in links:
                value = row.get(link.field.name)
                if link.tool is source and value is not None and (best is None or (link.strength, at) > best[:2]):
                    best = link.strength, at, value
            if best is None and row.get(parameter.name) is not None and (parameter.role == "id" or source is tool):
                best = 0.5, at, row[parameter.name]
        return best[2] if best is not None else None

    def _obtained(self, thing: Thing, tool: IndexedTool, parameter: Parameter) -> Value:
        """What of a thing goes to a parameter, after a look at all its facts when need be; None when nothing does."""
        argument = self.supplied(thing, tool, parameter)
        for record, key in thing.kind.records if thing.kind is not None and argument is None else ():
            own = self.supplied(thing, record, key)
            if own is not None and argument is None and not any(seen is record for seen, _ in thing.pieces):
                thing.pieces.append((record, (yield from self._record(record, key, own))))
                argument = self.supplied(thing, tool, parameter)
        return argument

    def _belonging(self, thing: Thing, words: Words) -> Value:
        """How many things of the kind that `words` name belong to a thing: the zones of a country.

        Raises:
            UnclearError: no tool lists them.
        """
        kind = self.kinds.called(words)
        for tool in kind.lists if kind is not None else ():
            for parameter in tool.required if tool.items and len(tool.required) == 1 else ():
                argument = yield from self._obtained(thing, tool, parameter)
                if argument is not None:
                    query = Query(tool=tool, given={parameter.name: argument})
                    rows = yield from self.runner.rows(query, whole=True)
                    return rows[0].get("total")
        raise UnclearError(f"nothing tells {' '.join(words)}")

    def _records(self, thing: Thing) -> Iterator[tuple[IndexedTool, Parameter]]:
        """Tools that tell about one thing, those of its own kind first."""
        own = thing.kind.records if thing.kind is not None else []
        yield from own
        for kind in self.kinds.known.values():
            if kind is not thing.kind:
                yield from kind.records

    def _record(self, tool: IndexedTool, parameter: Parameter, argument: Json) -> Generator[Step, Observation, Row]:
        rows = yield from self.runner.rows(Query(tool=tool, given={parameter.name: argument}))
        return rows[0]

    def _new(self, kind: Kind | None, tool: IndexedTool, row: Row, said: Json = None) -> Thing:
        return Thing(kind=kind, pieces=[(tool, row)], said=said, fresh=self.runner.changes)
