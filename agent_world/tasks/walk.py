"""The biased random walk over the tool graph, executed as it goes (method.md 5a).

It starts at a tool that has output and no strong predecessor; the next tool is drawn with probability proportional to
the weight of the edge. Strong and weak edges pass an earlier output on; independent edges take valid values from `D`.
Where a call needs the key of a row that a person would name, the call that finds the row by its name is put before it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agent_world.environments.model import Call, Json, Meaning, Tool
from agent_world.environments.session import Session
from agent_world.rollouts.model import Observation
from agent_world.tasks import reading
from agent_world.tasks.catalogue import Catalogue, outputs
from agent_world.tasks.graph import STRONG, WEAK, required
from agent_world.tasks.phrases import Thing
from agent_world.tasks.reading import Handle, Reading
from agent_world.tasks.saying import Given
from agent_world.tasks.values import optional_choice, value_for

_TRIES = 6
_PASS_ON = 0.85
_INCIDENTAL = {"document_append": 0.3, "document_read": 0.5}
"""Patterns that say little about the records, drawn less often than their edges weigh."""
_EAGERNESS = 3.0
"""How much more a walk that shall write goes to writing tools until it has."""

Bias = Callable[[str | None, str], float]
"""The factor by which a guideline raises the step from one tool (None at the start) to another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One executed call of a walk: its arguments as said, which earlier moves they came from, and what it offers."""

    tool: Tool
    given: Mapping[str, Given]
    origins: Mapping[str, int]
    observation: Observation
    reading: Reading

    @property
    def call(self) -> Call:
        """The call itself."""
        return Call(tool=self.tool.name, arguments={name: item.value for name, item in self.given.items()})


@dataclass(slots=True)
class Walker:
    """One walk in one session. `moves` grows; a draw that cannot be carried out leaves it as it was."""

    catalogue: Catalogue
    session: Session
    rng: random.Random
    bias: Bias
    writes: bool = True
    moves: list[Move] = field(default_factory=list)

    def walk(self, length: int) -> list[Move]:
        """Moves of about `length` drawn tools; look-ups that were put before them come on top."""
        drawn: list[str] = []
        failures = 0
        while len(drawn) < length and failures < _TRIES:
            tool = self._next(drawn)
            if tool is None:
                break
            if self._step(tool):
                drawn.append(tool.name)
            else:
                failures += 1
        return self.moves

    def _next(self, drawn: list[str]) -> Tool | None:
        graph, tools = self.catalogue.graph, self.catalogue.environment.tools
        current = drawn[-1] if drawn else None
        weights = []
        for tool in tools:
            if (
                (tool.writes and not self.writes)
                or self._made(tool)
                or not outputs(tool)
                or not self._reachable(tool)
                or drawn.count(tool.name) > 1
            ):
                weights.append(0.0)
            elif current is None:
                weights.append(0.0 if graph.has_strong_predecessor(tool.name) else self.bias(None, tool.name))
            elif tool.name == current:
                weights.append(0.0)
            else:
                weights.append(graph.edge(current, tool.name).weight * self.bias(current, tool.name))
        weights = [w * _INCIDENTAL.get(tool.pattern, 1.0) for tool, w in zip(tools, weights, strict=True)]
        if self.writes and not self._has_written():
            weights = [w * (_EAGERNESS if tool.writes else 1) for tool, w in zip(tools, weights, strict=True)]
        if not any(weights):
            return None
        return self.rng.choices(tools, weights)[0]

    def _has_written(self) -> bool:
        """Whether a row of `D` is part of a change already: opening an empty record alone is no task."""
        return any(
            move.tool.writes
            and any(item.meaning.kind == "key" and not item.thing.made for item in move.given.values() if item.thing)
            for move in self.moves
        )

    def _made(self, tool: Tool) -> bool:
        """Whether `tool` would make a second row of a kind: `the new loan` would then mean either."""
        kinds = {meaning.table for meaning in tool.outputs.values() if meaning.kind == "minted"}
        return any(
            handle.thing.made and handle.meaning.table in kinds
            for move in self.moves
            for handle in move.reading.handles
        )

    def _reachable(self, tool: Tool) -> bool:
        """Whether every key that `tool` needs can be had: from an earlier call, or from rows that `D` holds."""
        for parameter in required(tool):
            meaning = tool.inputs.get(parameter)
            if meaning is None:
                return False
            if meaning.kind == "key" and not self._handles(meaning) and not self._holds(meaning):
                return False
        return True

    def _holds(self, meaning: Meaning) -> bool:
        return bool(meaning.table) and self.catalogue.database.table(meaning.table or "").rows > 0

    def _step(self, tool: Tool) -> bool:
        """Carry out one call of `tool`; a write that a rule refuses is tried about other rows."""
        kept = len(self.moves)
        for _ in range(_TRIES if tool.writes else 1):
            move = self._attempt(tool)
            if move is not None:
                self.moves.append(move)
                return True
            del self.moves[kept:]
        return False

    def _attempt(self, tool: Tool) -> Move | None:
        given: dict[str, Given] = {}
        origins: dict[str, int] = {}
        rows: dict[str, dict[str, Json]] = {}
        needed = required(tool)
        for parameter in tool.inputs:
            wanted = parameter in needed or optional_choice(tool, parameter, given, self.rng)
            if wanted and not self._bind(tool, parameter, given, origins, rows) and parameter in needed:
                return None
        return self._execute(tool, given, origins)

    def _bind(self, tool: Tool, parameter: str, given: dict[str, Given], origins: dict[str, int], rows: dict) -> bool:
        """Give `parameter` a value: an earlier output where the graph has an edge for it, else one from `D`."""
        meaning = tool.inputs[parameter]
        handles = [
            pair for pair in self._handles(meaning) if all(pair[1].value != item.value for item in given.values())
        ]
        if handles and (meaning.kind == "key" or self.rng.random() < _PASS_ON):
            index, handle = handles[-1] if self.rng.random() < _PASS_ON else self.rng.choice(handles)
            given[parameter] = Given(value=handle.value, meaning=meaning, thing=handle.thing)
            origins[parameter] = index
            return True
        if tool.documents and (value := self._from_document(tool, parameter, given)) is not None:
            given[parameter] = Given(value=value, meaning=Meaning(kind="value"))
            return True
        if meaning.kind == "key":
            return self._look_up(parameter, meaning, given, origins)
        if meaning.kind == "label":
            return self._by_name(parameter, meaning, given)
        value = value_for(self.catalogue, tool, parameter, rows, self.rng)
        if value is None:
            return False
        given[parameter] = Given(value=value, meaning=meaning)
        return True

    def _from_document(self, tool: Tool, parameter: str, given: Mapping[str, Given]) -> Json:
        """A value out of the document that `tool` reads; a new value for a field is one that other entries have."""
        field = given["field"].value if parameter == "value" and "field" in given else parameter
        return self.catalogue.sheets.draw(tool, str(field), self.rng)

    def _look_up(self, parameter: str, meaning: Meaning, given: dict[str, Given], origins: dict[str, int]) -> bool:
        """Bind a key by finding a row of `D` by its name first, or by its code where people use that."""
        table = self.catalogue.database.table(meaning.table or "")
        finders = self.catalogue.finders.get(table.name, [])
        for _ in range(_TRIES):
            row = self.catalogue.facts.draw(table.name, self.rng)
            if row is None:
                return False
            name = self.catalogue.facts.name(table.name, row)
            if name is None or not finders:
                value = row.get(meaning.column or "")
                if table.label is not None and finders:
                    continue
                if value is None or any(item.value == value for item in given.values()):
                    continue
                code = Thing(noun=table.singular, code=str(value))
                given[parameter] = Given(value=value, meaning=meaning, thing=code)
                return True
            finder = self.rng.choice(finders)
            thing = Thing(noun=table.singular, name=name.text, typed=name.typed)
            label = Given(value=name.text, meaning=finder.tool.inputs[finder.parameter], thing=thing)
            move = self._execute(finder.tool, {finder.parameter: label}, {})
            if move is None:
                continue
            match = [handle for handle in move.reading.handles if _fits(handle.meaning, meaning)]
            if not match or any(item.value == match[0].value for item in given.values()):
                continue
            self.moves.append(move)
            given[parameter] = Given(value=match[0].value, meaning=meaning, thing=match[0].thing)
            origins[parameter] = len(self.moves) - 1
            return True
        return False

    def _by_name(self, parameter: str, meaning: Meaning, given: dict[str, Given]) -> bool:
        table = self.catalogue.database.table(meaning.table or "")
        for _ in range(_TRIES):
            row = self.catalogue.facts.draw(table.name, self.rng)
            name = self.catalogue.facts.name(table.name, row) if row is not None else None
            if name is not None and meaning.column == table.label:
                thing = Thing(noun=table.singular, name=name.text, typed=name.typed)
                given[parameter] = Given(value=name.text, meaning=meaning, thing=thing)
                return True
        return False

    def _execute(self, tool: Tool, given: Mapping[str, Given], origins: Mapping[str, int]) -> Move | None:
        if any(move.tool.name == tool.name and _values(move.given) == _values(given) for move in self.moves):
            return None
        observation = self.session.call(tool.name, _values(given))
        if observation.status != "ok":
            return None
        found = reading.read(self.catalogue, tool, given, observation.value)
        if not found.handles and not found.askable and not tool.writes:
            return None
        return Move(tool=tool, given=dict(given), origins=dict(origins), observation=observation, reading=found)

    def _handles(self, meaning: Meaning) -> list[tuple[int, Handle]]:
        """Earlier outputs that have the meaning which a parameter asks for."""
        if meaning.kind not in ("key", "label", "filter"):
            return []
        return [
            (index, handle)
            for index, move in enumerate(self.moves)
            for handle in move.reading.handles
            if _fits(handle.meaning, meaning)
            and (meaning.kind != "filter" or (handle.words and handle.thing.pick is None))
        ]


def edge_weights(catalogue: Catalogue, moves: list[Move]) -> list[int]:
    """The weight of the edge by which each argument of `moves` was bound: strong, weak, or independent (from `D`)."""
    weights = []
    for move in moves:
        for parameter in move.given:
            if parameter not in move.origins:
                weights.append(1)
                continue
            source = moves[move.origins[parameter]].tool.name
            same = source == move.tool.name
            strong = not same and catalogue.graph.edge(source, move.tool.name).weight == STRONG
            weights.append(STRONG if strong else WEAK)
    return weights


def _fits(given: Meaning, wanted: Meaning) -> bool:
    return (given.table, given.column) == (wanted.table, wanted.column) and (
        given.kind == wanted.kind or (given.kind, wanted.kind) in {("status", "filter"), ("minted", "key")}
    )


def _values(given: Mapping[str, Given]) -> dict[str, Json]:
    return {name: item.value for name, item in given.items()}
