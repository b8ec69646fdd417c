"""Works out what a term stands for, by calls of reading tools."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step
from agent_world.solver.fitting import FITS, likeness
from agent_world.solver.lexicon import fold, lexicon
from agent_world.solver.listing import Lists
from agent_world.solver.places import same_text
from agent_world.solver.query import Query
from agent_world.solver.run import SetbackError, compared
from agent_world.solver.terms import (
    Attribute,
    Best,
    Condition,
    Count,
    Figure,
    Group,
    Made,
    Named,
    Several,
    Term,
    Which,
    Words,
)
from agent_world.solver.things import Found, Thing, UnclearError, Value


@dataclass(slots=True)
class Denoter(Lists):
    """Works terms out over one runner. `known` are things that were worked out before."""

    known: dict[Term, list[Thing]] = field(default_factory=dict)

    def things(self, term: Term) -> Found:
        """The things that a term stands for.

        Raises:
            UnclearError: nothing here can tell.
            SetbackError: the environment refused.
        """
        if isinstance(term, Made):
            return [self._made(term.noun)]
        if term not in self.known:
            self.known[term] = yield from self._things(term)
        return self.known[term]

    def thing(self, term: Term) -> Generator[Step, Observation, Thing]:
        """The one thing that a term stands for.

        Raises:
            UnclearError: there is none, or more than one.
            SetbackError: the environment refused.
        """
        found = yield from self.things(term)
        if len(found) != 1:
            raise UnclearError(f"{len(found)} things")
        return found[0]

    def value(self, term: Term) -> Value:
        """The value of a fact, a count or a figure; of a thing what it is called.

        Raises:
            UnclearError: nothing here can tell.
            SetbackError: the environment refused.
        """
        match term:
            case Attribute():
                return (yield from self._told((yield from self.thing(term.of)), term.words))
            case Count():
                return (yield from self._count(term.of))
            case Figure():
                return (yield from self._figure(term))
            case Which():
                return self.called((yield from self.thing(term.of)))
        return self.called((yield from self.thing(term)))

    def holds(self, thing: Thing, condition: Condition) -> Generator[Step, Observation, bool]:
        """Whether a thing meets a condition.

        Raises:
            UnclearError, SetbackError: as `fact`.
        """
        value = yield from self.fact(thing, condition.words, missing=True)
        met = yield from self.meets(value, condition)
        if met == condition.negated and condition.operator == "same" and isinstance(condition.value, str):
            named = yield from self._told(thing, condition.words)
            return (yield from self.meets(named, condition))
        return met

    def meets(self, value: Json, condition: Condition) -> Generator[Step, Observation, bool]:
        """Whether a value is what a condition asks for."""
        if condition.operator == "marked":
            return value is not None and bool(value) != condition.negated
        if value is None:
            return False
        wanted = condition.value
        if condition.operator == "like":
            other = yield from self.thing(wanted)
            wanted = yield from self.fact(other, condition.words)
        elif isinstance(wanted, Term):
            other = yield from self.thing(wanted)
            names = {fold(str(one)) for _, row in other.pieces for one in row.values() if not isinstance(one, dict)}
            return (fold(str(value)) in names | {fold(str(other.said))}) != condition.negated
        if condition.operator in ("same", "like"):
            if isinstance(value, bool):
                return (value == (fold(str(wanted)) in ("yes", "true"))) != condition.negated
            return same_text(value, wanted) != condition.negated
        if condition.operator == "eq" and not isinstance(value, int | float):
            return same_text(value, wanted) != condition.negated
        return compared(value, condition.operator, wanted, condition.upper) != condition.negated

    def _things(self, term: Term) -> Found:
        match term:
            case Named():
                return [(yield from self._named(term))]
            case Several() if term.parts[0].noun is None:
                return (yield from self._of_one_kind(term))
            case Several():
                found = []
                for one in term.parts:
                    found += yield from self.things(one)
                return found
            case Group():
                return (yield from self._group(term))
            case Best():
                return [(yield from self._best(term))]
            case Attribute():
                return [(yield from self._related((yield from self.thing(term.of)), term.words))]
            case Which():
                return (yield from self.things(term.of))
        raise UnclearError("no thing")

    def _group(self, term: Group) -> Found:
        if term.of is not None:
            whole = flattened(term)
            if whole.of is None:
                try:
                    return (yield from self.things(whole))
                except (UnclearError, SetbackError):
                    pass  # no tool shows it all; one by one then
            found = yield from self.things(term.of)
            return (yield from self._kept(found, term.conditions))
        return (yield from self._listed(term, ()))

    def _listed(self, term: Group, needed: Words) -> Found:
        """The things of a group from the tool that restricts them best and shows the fact `needed`."""
        kind = self.kinds.known.get(term.noun)
        refusal: SetbackError | None = None
        for source in (yield from self._best_sources(term, needed)):
            try:
                rows = yield from self.runner.rows(Query(tool=source.tool, given=source.given))
            except SetbackError as setback:
                refusal = setback
                continue
            if rows:
                kept = yield from self._kept([self._new(kind, source.tool, row) for row in rows], source.left)
                return (yield from self._others(term, kept)) if not term.plural else kept
        if refusal is not None:
            raise refusal
        return []

    def _others(self, term: Group, things: list[Thing]) -> Found:
        """Of things like another one, those that are not that other one."""
        for condition in term.conditions:
            if condition.operator == "like":
                other = yield from self.thing(condition.value)
                own = {str(self.label(other)), str(other.said)}
                things = [one for one in things if not {str(self.label(one)), self._key(one)} & own]
        return things

    def _key(self, thing: Thing) -> str:
        keys = [row.get(one.name) for tool, row in thing.pieces for one in tool.fields if one.key]
        return str(keys[0]) if keys else ""

    def _kept(self, things: Sequence[Thing], conditions: Sequence[Condition]) -> Found:
        kept = []
        for thing in things:
            for condition in conditions:
                if not (yield from self.holds(thing, condition)):
                    break
            else:
                kept.append(thing)
        return kept

    def _best(self, term: Best) -> Generator[Step, Observation, Thing]:
        group = term.of
        if term.words and isinstance(group, Group) and group.of is None:
            ranked = yield from self._ranked(group, term.words, term.more)
            if ranked is not None:
                return ranked
        plain = isinstance(group, Group) and group.of is None
        found = (yield from self._listed(group, term.words)) if plain else (yield from self.things(group))
        if term.adjective:
            term = self._measured(term, found)
        scored = []
        for thing in found:
            value = (yield from self.fact(thing, term.words, missing=True)) if term.words else self.label(thing)
            if value is not None:
                scored.append((fold(value) if isinstance(value, str) else value, thing))
        if not scored:
            raise UnclearError("none has it")
        if not term.words:
            return min(scored, key=lambda pair: pair[0])[1]
        return (max if term.more else min)(scored, key=lambda pair: pair[0])[1]

    def _measured(self, term: Best, things: Sequence[Thing]) -> Best:
        """The term with the fact that its adjective is about, as these things have it.

        Raises:
            UnclearError: none of their facts is what it measures.
        """
        kind = things[0].kind if things else None
        known = [one for tool in (kind.tools if kind is not None else ()) for one in tool.fields if one.numeric]
        scored = [
            (self.box.closest(word, one.words), -at, word, degree.more, one)
            for degree in lexicon().degrees[term.adjective]
            for word in sorted(degree.of)
            for at, one in enumerate(known)
            if not one.key and (one.item or not one.counts)
        ]
        fit, _, _, more, one = max(scored, key=lambda entry: entry[:2], default=(0.0, 0, "", True, None))
        if one is None or fit < FITS:
            raise UnclearError(f"nothing is {term.adjective}")
        return replace(term, words=tuple(one.name.split("_")), more=more, adjective="")

    def _count(self, of: Term) -> Value:
        of = flattened(of) if isinstance(of, Group) else of
        if isinstance(of, Group) and of.of is None:
            for source in (yield from self._best_sources(of, counting=True)):
                number = yield from self._number(source)
                if number:
                    return number
        return len((yield from self.things(of)))

    def _figure(self, term: Figure) -> Value:
        if isinstance(term.of, Group) and term.of.of is None:
            words = (term.summary, *term.words)
            for source in (yield from self._sources(term.of)):
                if source.tool.items or source.left or source.tool.required or not source.tool.fields:
                    continue
                fields = [(likeness(self.box, words, one), at, one) for at, one in enumerate(source.tool.fields)]
                score, _, best = max(fields, key=lambda entry: entry[0])
                if score > 0.8:
                    rows = yield from self.runner.rows(Query(tool=source.tool, given=source.given))
                    return rows[0].get(best.name)
            if term.summary in ("highest", "lowest"):
                ranked = yield from self._ranked(term.of, term.words, term.summary == "highest")
                if ranked is not None:
                    return (yield from self.fact(ranked, term.words))
        plain = isinstance(term.of, Group) and term.of.of is None
        found = (yield from self._listed(term.of, term.words)) if plain else (yield from self.things(term.of))
        values = [value for value in (yield from self.facts(found, term.words)) if isinstance(value, int | float)]
        if not values:
            raise UnclearError(f"none has {' '.join(term.words)}")
        if term.summary == "difference":
            return max(values) - min(values)
        return {"highest": max, "lowest": min, "sum": sum, "mean": lambda found: sum(found) / len(found)}[term.summary](
            values
        )


def flattened(term: Group) -> Group:
    """A group of a group as one group with the conditions of both."""
    if not isinstance(term.of, Group):
        return term
    inner = flattened(term.of)
    return replace(term, noun=inner.noun, conditions=(*inner.conditions, *term.conditions), of=inner.of)
