"""Turns constraints into queries: which tool, which parameter each name or number goes to, what is filtered afterwards.

A beam search over the places of all constraints finds the plan. The noise that a seed adds to the scores is what makes
two solvers differ.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent_world.environments.model import Json
from agent_world.solver.fields import Field, Parameter
from agent_world.solver.index import IndexedTool, Link, Toolbox
from agent_world.solver.lexicon import fold
from agent_world.solver.model import Compare, Constraint, Extreme, Mention, mark_of, weight_of
from agent_world.solver.places import (
    DEPTH,
    LABELS,
    Feed,
    Give,
    Known,
    Places,
    Select,
    Slot,
    Sort,
    agrees,
    as_number,
    same_text,
)
from agent_world.solver.query import Blame, Keep, Order, Place, Query

_BEAM = 8
_EXPLAINED = 1.0  # worth of a name that has led to what is given now
_FAR = 9999  # an open end of a span
_TRIED = 6  # places tried for a constraint


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A query, the worth of its assignments, constraints without a place, and required parameters without a value."""

    query: Query
    score: float
    left: tuple[Constraint, ...]
    missing: tuple[Parameter, ...] = ()


@dataclass(slots=True)
class Chance:
    """Noise for scores: one draw a key, so that a choice once made is made again."""

    random: random.Random
    temperature: float
    drawn: dict[object, float] = field(default_factory=dict)

    def __call__(self, *key: object) -> float:
        """The noise for `key`."""
        if key not in self.drawn:
            self.drawn[key] = self.random.gauss(0.0, self.temperature)
        return self.drawn[key]


class Recall(Protocol):
    """Gives what is known from before for a parameter, or None; with `mark` what was found by that name or number."""

    def __call__(self, tool: IndexedTool, parameter: Parameter, mark: str | None = None) -> Fact | None:
        """The fact, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A value that was seen or used: in which tool's result, under which name, and the marks of what led to it.

    `key` says that rows are named by it.
    """

    tool: str
    name: str
    value: Json
    origin: frozenset[str] = frozenset()
    key: bool = False


@dataclass(slots=True)
class Planner:
    """Builds queries over one toolbox."""

    box: Toolbox
    chance: Chance
    recall: Recall
    places: Places

    def build(
        self,
        tool: IndexedTool,
        constraints: Sequence[Constraint],
        depth: int = 0,
        spread: Parameter | None = None,
        check: bool = False,
    ) -> Plan:
        """The best way to call `tool` so that the constraints hold.

        `spread` names a parameter that shall run over all its values. With `check` a single record may be held against
        the constraints too.
        """
        needed = {one.name for one in tool.required if one is not spread and self._known(tool, one) is None}
        beam: list[tuple[float, tuple[Slot | None, ...]]] = [(0.0, ())]
        # What one order leaves out may be for the next one.
        cost = 0.35 if tool.writes and not depth else 0.8
        for constraint in constraints:
            options = self._options(constraint, tool, depth, spread, check)
            grown = [(score - cost * weight_of(constraint), (*slots, None)) for score, slots in beam]
            grown += [
                (score + worth, (*slots, slot))
                for score, slots in beam
                for worth, slot in options
                if _free(slot, slots)
            ]
            grown.sort(key=lambda partial: -partial[0])
            beam = grown[:_BEAM]
        _, slots = max(beam, key=lambda partial: partial[0] - 0.4 * len(needed - _filled(partial[1])))
        return self._assembled(tool, constraints, slots, depth, spread, check)

    def feed(
        self, tool: IndexedTool, parameter: Parameter, constraints: Sequence[Constraint]
    ) -> tuple[Query, Field] | None:
        """The query by which `constraints` say what to give to `parameter`; None when they do not fit any."""
        best: tuple[float, Query, Field] | None = None
        for link in self.box.links.get((tool.name, parameter.name), ()):
            if link.tool.writes:
                continue
            plan = self.build(link.tool, constraints, 1)
            unplaced = [one for one in plan.left if not isinstance(one, Mention) or one.kind != "number"]
            score = plan.score + 0.1 * link.strength - len(unplaced)
            if not plan.missing and len(unplaced) < len(constraints) and (best is None or score > best[0]):
                best = score, plan.query, link.field
        return (best[1], best[2]) if best is not None and best[0] > 0.2 else None

    def _options(
        self, constraint: Constraint, tool: IndexedTool, depth: int, spread: Parameter | None, check: bool
    ) -> list[tuple[float, Slot]]:
        found = [
            (score + self.chance(tool.name, constraint.at, slot_key(slot)), slot)
            for score, slot in self.places.slots(constraint, tool, depth, check)[: 2 * _TRIED]
            if spread is None or getattr(slot, "parameter", None) is not spread
        ]
        for parameter in tool.required:
            fact = self._known(tool, parameter)
            if parameter.role == "id" and (fact is None or mark_of(constraint) not in fact.origin):
                fact = self.recall(tool, parameter, mark_of(constraint))
            if fact is not None and parameter.role == "id" and mark_of(constraint) in fact.origin:
                found.append((_EXPLAINED, Known(parameter, fact.value)))
        return sorted(found, key=lambda pair: -pair[0])[:_TRIED]

    def _assembled(
        self,
        tool: IndexedTool,
        constraints: Sequence[Constraint],
        slots: Sequence[Slot | None],
        depth: int,
        spread: Parameter | None,
        check: bool,
    ) -> Plan:
        given: dict[str, Json] = {}
        feeds: dict[str, tuple[Link, list[Constraint]]] = {}
        keeps: list[Keep] = []
        wanted: list[str] = []
        blame: list[Blame] = []
        origins: dict[str, frozenset[str]] = {}
        left: list[Constraint] = []
        order: Order | None = None
        score = 0.0
        many = check or tool.items is not None or spread is not None or any(isinstance(slot, Feed) for slot in slots)
        for constraint, slot in zip(constraints, slots, strict=True):
            if slot is None or (isinstance(slot, Select) and not many):
                left.append(constraint)
                continue
            if isinstance(slot, Feed):
                feeds.setdefault(slot.parameter.name, (slot.link, []))[1].append(constraint)
                continue
            if isinstance(slot, Known):
                score += _EXPLAINED
                latest = self._known(tool, slot.parameter)
                if latest is None or latest.value != slot.value:
                    given[slot.parameter.name] = slot.value
                    origins[slot.parameter.name] = frozenset({mark_of(constraint)})
                continue
            score += self._worth(constraint, tool, depth, slot, check)
            if isinstance(slot, Sort):
                given[slot.parameter.name] = slot.value
                order = Order(place=slot.place, more=self._upward(constraint, slot.place.field), count=constraint.count)
            elif isinstance(slot, Give):
                given[slot.parameter.name] = self.value_for(slot.parameter, constraint)
                if slot.twin is not None and isinstance(constraint, Compare):
                    given[slot.twin.name] = self._bound(slot.twin, constraint)
                origins[slot.parameter.name] = frozenset({mark_of(constraint)})
                if isinstance(constraint, Mention):
                    blame.append((constraint.text, tool.name, slot.parameter.name))
                    if slot.parameter.role == "search":
                        wanted.append(constraint.text)
                elif slot.twin is not None and constraint.operator in ("between", "eq", "ge", "le"):
                    continue  # the span says it all
                elif isinstance(constraint, Compare) and (seen := self._visible(constraint, tool)) is not None:
                    keeps.append(self._keep(constraint, seen))
            elif isinstance(constraint, Extreme):
                order = Order(place=slot.place, more=self._upward(constraint, slot.place.field), count=constraint.count)
            elif isinstance(constraint, Compare):
                keeps.append(self._keep(constraint, slot.place))
            else:
                keeps.append(
                    Keep(
                        place=slot.place,
                        operator="same",
                        value=constraint.value,
                        blame=(constraint.text, tool.name, slot.place.field.name),
                    )
                )
        fed: dict[str, tuple[Query, Field]] = {}
        marks = {mark_of(constraint) for constraint, slot in zip(constraints, slots, strict=True) if slot is not None}
        missing: list[Parameter] = []
        for name, (link, own) in feeds.items():
            inner = self.build(link.tool, own, depth + 1)
            missing += inner.missing
            fed[name] = (inner.query, link.field)
            marks |= inner.query.marks
            origins[name] = inner.query.marks
            score += inner.score - 0.12 + 0.1 * (link.strength - 1)
            left += inner.left
        spreads = {spread.name: spread.enum} if spread is not None else {}
        for parameter in tool.required:
            if parameter.name in given or parameter.name in fed or parameter.name in spreads:
                continue
            known = self._known(tool, parameter)
            if known is not None:
                given[parameter.name] = known.value
                marks |= known.origin
                origins[parameter.name] = known.origin
                source = self.box.tool(known.tool)
                score += 0.5 if source is not None and source.writes else 0.3
                continue
            filled = self._unfed(tool, parameter, depth)
            if filled is None:
                missing.append(parameter)
            elif isinstance(filled[0], Query):
                fed[parameter.name] = filled
                score -= 0.6
            else:
                spreads[parameter.name] = filled
                score -= 0.5
        query = Query(
            tool=tool,
            given=given,
            fed=fed,
            spread=spreads,
            keeps=tuple(keeps),
            order=order,
            wanted=tuple(wanted),
            blame=tuple(blame),
            marks=frozenset(marks),
            origins=origins,
            sorted=any(isinstance(slot, Sort) for slot in slots),
        )
        return Plan(query=query, score=score, left=tuple(left), missing=tuple(missing))

    def _worth(self, constraint: Constraint, tool: IndexedTool, depth: int, slot: Slot, check: bool) -> float:
        score = next(score for score, one in self.places.slots(constraint, tool, depth, check) if one is slot)
        return score + self.chance(tool.name, constraint.at, slot_key(slot))

    def _known(self, tool: IndexedTool, parameter: Parameter) -> Fact | None:
        return None if parameter.role == "number" else self.recall(tool, parameter)

    def value_for(self, parameter: Parameter, constraint: Constraint) -> Json:
        """The constraint as an argument of the parameter's type."""
        if isinstance(constraint, Compare):
            return self._bound(parameter, constraint)
        if isinstance(constraint, Extreme):
            return 1
        value = parameter.examples.get(fold(str(constraint.value)), constraint.value)
        if parameter.enum:
            return next((one for one in parameter.enum if same_text(one, value)), value)
        if parameter.numeric and isinstance(value, str):
            return as_number(value)
        if not parameter.numeric and isinstance(value, int | float):
            return constraint.text if not constraint.text.isalpha() else str(value)
        if parameter.types == {"integer"} and isinstance(value, float) and value.is_integer():
            return int(value)
        return value

    def _bound(self, parameter: Parameter, constraint: Compare) -> Json:
        """A limit for a parameter that takes one; never narrower than what was asked for."""
        value = constraint.upper if constraint.operator == "between" and parameter.role == "high" else constraint.value
        open_end = {"low": ("lt", "le"), "high": ("gt", "ge")}.get(parameter.role, ())
        dated = not parameter.numeric
        if constraint.operator in open_end:
            end = parameter.role == "high"
            return ("9999-12-31" if end else "0001-01-01") if dated else (_FAR if end else -_FAR)
        if dated and isinstance(value, int):
            return f"{value:04}-12-31" if parameter.role == "high" else f"{value:04}-01-01"
        if parameter.types == {"integer"} and isinstance(value, int) and not parameter.strict:
            if constraint.operator == "gt" and parameter.role == "low":
                return value + 1
            if constraint.operator == "lt" and parameter.role == "high":
                return value - 1
        if parameter.types == {"integer"} and isinstance(value, float):
            return math.floor(value) if parameter.role == "low" else math.ceil(value)
        if not parameter.numeric and not isinstance(value, str):
            return str(value)
        return value

    def _unfed(self, tool: IndexedTool, parameter: Parameter, depth: int) -> tuple | None:
        """A required parameter that nothing was said about: every value, or all rows of a tool that lists them."""
        if tool.writes:
            return None
        if parameter.role == "enum":
            return parameter.enum
        if depth >= DEPTH - 1:
            return None
        for link in self.box.links.get((tool.name, parameter.name), ()):
            if not link.tool.writes and link.tool.items and not link.tool.required and link.field.item:
                return Query(tool=link.tool), link.field
        return None

    def _upward(self, constraint: Extreme, one: Field) -> bool:
        """Whether more of the field is what is asked for."""
        return agrees(self.box, constraint, one.words) if constraint.degrees else constraint.more

    def _keep(self, constraint: Compare, place: Place) -> Keep:
        flipped = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
        operator = constraint.operator
        if constraint.degrees and operator in ("gt", "ge") and not agrees(self.box, constraint, place.field.words):
            operator = flipped[operator]
        return Keep(place=place, operator=operator, value=constraint.value, upper=constraint.upper)

    def _visible(self, constraint: Compare, tool: IndexedTool) -> Place | None:
        """A field of the rows that shows what a limit is about."""
        fields = [
            (self.places.measured(constraint, one), one)
            for one in tool.fields
            if one.numeric and one.item and not one.key
        ]
        score, best = max(fields, key=lambda pair: pair[0], default=(0.0, None))
        return Place(field=best) if best is not None and score > 0.6 else None


def slot_key(slot: Slot) -> tuple:
    """What tells a place from others, for noise and for conflicts."""
    if isinstance(slot, Give):
        return "give", slot.parameter.name
    if isinstance(slot, Sort):
        return "sort", slot.parameter.name, slot.place.field.name
    if isinstance(slot, Known):
        return "known", slot.parameter.name
    if isinstance(slot, Feed):
        return "feed", slot.parameter.name, slot.link.tool.name, slot.link.field.name, slot_key(slot.inner)
    return "select", slot.place.field.name, slot.place.detail[0].name if slot.place.detail else ""


def _filled(slots: Sequence[Slot | None]) -> set[str]:
    names = {slot.parameter.name for slot in slots if isinstance(slot, Give | Feed | Known)}
    return names | {slot.twin.name for slot in slots if isinstance(slot, Give) and slot.twin is not None}


def _free(slot: Slot, taken: Sequence[Slot | None]) -> bool:
    """Whether a place goes together with those already taken."""
    for other in taken:
        if other is None:
            continue
        if isinstance(slot, Select) != isinstance(other, Select):
            # A name that is searched for and another one that the same rows are to carry contradict each other.
            select, give = (slot, other) if isinstance(slot, Select) else (other, slot)
            if isinstance(give, Give) and give.parameter.role == "search" and LABELS & set(select.place.field.names):
                return False
        elif isinstance(slot, Select):
            if slot_key(slot) == slot_key(other):
                return False
        elif slot.parameter is other.parameter:
            if isinstance(slot, Known) and isinstance(other, Known) and slot.value == other.value:
                continue
            if not isinstance(slot, Feed) or not isinstance(other, Feed) or slot.link is not other.link:
                return False
            if not _free(slot.inner, (other.inner,)):
                return False
    return True
