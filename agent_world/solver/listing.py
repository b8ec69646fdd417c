"""Which tool lists the things of a group: its arguments, and what is left to check on each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step
from agent_world.solver.fields import Parameter
from agent_world.solver.fitting import FITS, likeness, typed
from agent_world.solver.index import IndexedTool
from agent_world.solver.naming import Names
from agent_world.solver.places import rising_and_falling, same_text
from agent_world.solver.query import Query
from agent_world.solver.run import SetbackError
from agent_world.solver.terms import Condition, Group, Named, Term, Words
from agent_world.solver.things import Thing, UnclearError, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A tool for the things of a group: its arguments, and the conditions that are left to check on each."""

    tool: IndexedTool
    given: Mapping[str, Json]
    left: tuple[Condition, ...]
    score: float


@dataclass(slots=True)
class Lists(Names, ABC):
    """Finds the tools that list groups, over one runner."""

    @abstractmethod
    def thing(self, term: Term) -> Generator[Step, Observation, Thing]:
        """The one thing that a term stands for, which a condition may be about."""

    def _best_sources(
        self, term: Group, needed: Words = (), *, counting: bool = False
    ) -> Generator[Step, Observation, list[Source]]:
        """The tools to get the things of a group from, best first, as long as they say as much as the best one.

        Raises:
            UnclearError: no tool lists them.
        """
        sources = [
            one
            for one in (yield from self._sources(term))
            if one.tool.items or one.given or (counting and any(told.counts for told in one.tool.fields))
        ]
        if not sources:
            raise UnclearError(f"nothing lists {' '.join(term.noun)}")
        sources.sort(key=lambda source: -source.score - (0.4 * self._shown(source.tool, needed) if needed else 0.0))
        return [one for one in sources if len(one.left) <= len(sources[0].left)]

    def _sources(self, term: Group) -> Generator[Step, Observation, list[Source]]:
        kind = self.kinds.known.get(term.noun)
        if kind is None:
            raise UnclearError(f"no {' '.join(term.noun)} here")
        found = []
        for tool in (*kind.lists, *(tool for tool, _ in kind.records)):
            given: dict[str, Json] = {}
            left: list[Condition] = []
            score = 0.0
            for condition in term.conditions:
                place = yield from self._argument(condition, tool, given)
                if place is None:
                    left.append(condition)
                    score += self._shown(tool, condition.words) - 0.5
                else:
                    given |= place[1]
                    score += 1.0 + place[0]
                    if condition.operator in ("gt", "lt"):
                        left.append(condition)
            if all(one.name in given for one in tool.required):
                order = any(one.role == "order" for one in tool.parameters)
                found.append(Source(tool=tool, given=given, left=tuple(left), score=score - 0.1 * order))
        return found

    def _shown(self, tool: IndexedTool, words: Words) -> float:
        """How well a list shows a fact of each thing."""
        best = max((likeness(self.box, words, one) for one in tool.fields if one.item), default=0.0)
        return best if best > FITS else 0.0

    def _argument(
        self, condition: Condition, tool: IndexedTool, taken: Mapping[str, Json]
    ) -> Generator[Step, Observation, tuple[float, dict[str, Json]] | None]:
        """How a condition goes into the arguments of a tool: how well it fits, and the arguments."""
        best: tuple[float, dict[str, Json]] | None = None
        for parameter in tool.parameters:
            if parameter.role in ("page", "size", "order", "search"):
                continue
            if parameter.name in taken and not _is_tighter(condition, taken[parameter.name]):
                continue
            fit = likeness(self.box, condition.words, parameter)
            if parameter.role != "id" and fit <= FITS:
                continue
            if best is not None and fit <= best[0]:
                continue
            given = yield from self._given(condition, tool, parameter, fit)
            if given is not None:
                best = fit, given
        return best

    def _given(
        self, condition: Condition, tool: IndexedTool, parameter: Parameter, fit: float
    ) -> Generator[Step, Observation, dict[str, Json] | None]:
        """The arguments by which `parameter` (and the other end of its span) expresses a condition; None: it cannot."""
        operator, value = condition.operator, condition.value
        if operator == "marked":
            return {parameter.name: not condition.negated} if parameter.role == "flag" else None
        if condition.negated:
            return None
        if operator in ("ge", "gt", "le", "lt"):
            side = "low" if operator in ("ge", "gt") else "high"
            return {parameter.name: typed(value, parameter)} if parameter.role == side else None
        if operator in ("between", "eq") and parameter.role in ("low", "high"):
            twin = next(
                (
                    one
                    for one in tool.parameters
                    if {one.role, parameter.role} == {"low", "high"} and likeness(self.box, condition.words, one) > FITS
                ),
                None,
            )
            if twin is None:
                return None
            low, high = (parameter, twin) if parameter.role == "low" else (twin, parameter)
            upper = condition.upper if operator == "between" else value
            return {low.name: typed(value, low), high.name: typed(upper, high)}
        if operator == "between" or parameter.role in ("low", "high", "flag"):
            return None
        if operator == "like" or isinstance(value, Term):
            other = yield from self.thing(value)
            argument = yield from self._obtained(other, tool, parameter)
            if operator == "like":
                if fit <= FITS and not self._leads_to(other, condition.words, tool, parameter):
                    return None
                argument = argument if argument is not None else (yield from self.fact(other, condition.words))
            elif argument is None and fit > FITS:
                argument = other.said
            return {parameter.name: typed(argument, parameter)} if argument is not None else None
        if parameter.enum:
            allowed = next((one for one in parameter.enum if same_text(one, value)), None)
            return {parameter.name: allowed} if allowed is not None else None
        links = self.box.links.get((tool.name, parameter.name), ())
        kind = self.kinds.called(condition.words)
        if parameter.role == "id" and kind is not None and links and kind.searches and isinstance(value, str):
            other = yield from self._by_name(kind, Named(noun=kind.noun, text=value, value=value))
            argument = self.supplied(other, tool, parameter) if other is not None else None
            if argument is not None:
                return {parameter.name: argument}
        return {parameter.name: typed(value, parameter)} if fit > FITS else None

    def _leads_to(self, thing: Thing, words: Words, tool: IndexedTool, parameter: Parameter) -> bool:
        """Whether the fact of a thing that `words` mean is what goes to a parameter."""
        fields = [(likeness(self.box, words, one), source, one) for source, _ in thing.pieces for one in source.fields]
        if not fields:  # nothing of it was read yet
            return False
        fit, source, best = max(fields, key=lambda entry: entry[0])
        links = self.box.links.get((tool.name, parameter.name), ())
        return fit > FITS and any(link.tool is source and link.field is best for link in links)

    def _ranked(self, group: Group, words: Words, more: bool) -> Generator[Step, Observation, Thing | None]:
        """The first of a ranking by a fact, when some tool ranks just these things by it."""
        rankings = []
        for source in (yield from self._sources(group)):
            order = next((one for one in source.tool.parameters if one.role == "order"), None)
            if order is None or source.left or not source.tool.fields:
                continue
            fit, _, measured = max(
                ((likeness(self.box, words, one), -at, one) for at, one in enumerate(source.tool.fields)),
                key=lambda entry: entry[:2],
            )
            upward, downward = rising_and_falling(order)
            told = set(measured.names) <= set(source.tool.words)
            if fit > FITS and told and upward is not None and downward is not None:
                rankings.append((fit, source, {**source.given, order.name: upward if more else downward}))
        if not rankings:
            return None
        _, source, given = max(rankings, key=lambda entry: entry[0])
        rows = yield from self.runner.rows(Query(tool=source.tool, given=given), only=1)
        return self._new(self.kinds.known[group.noun], source.tool, rows[0]) if rows else None

    def _number(self, source: Source) -> Value:
        """How many rows a source has, when that is told without looking at each; None when it is not."""
        if source.left:
            return None
        counting = next((one for one in source.tool.fields if one.counts and not source.tool.items), None)
        if source.tool.items is None and counting is None:
            return None
        try:
            rows = yield from self.runner.rows(Query(tool=source.tool, given=source.given), whole=True)
        except SetbackError:
            return None
        return rows[0].get("total" if counting is None else counting.name)


def _is_tighter(condition: Condition, bound: Json) -> bool:
    """Whether a bound leaves fewer than another one did on the same side."""
    value = condition.value
    if not isinstance(value, int | float) or not isinstance(bound, int | float):
        return False
    return value >= bound if condition.operator == "ge" else value <= bound if condition.operator == "le" else False
