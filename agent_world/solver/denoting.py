"""Works out what a term stands for, by calls of reading tools."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step
from agent_world.solver.fields import Bag, Field, Parameter, bag_of
from agent_world.solver.index import IndexedTool, Toolbox
from agent_world.solver.kinds import Kind, Kinds, kinds_of
from agent_world.solver.lexicon import fold, lexicon, stem
from agent_world.solver.mentions import looks_like_code
from agent_world.solver.places import LABELS, as_number, rising_and_falling, same_text
from agent_world.solver.query import Query
from agent_world.solver.run import Row, Runner, SetbackError, compared
from agent_world.solver.terms import (
    Attribute,
    Best,
    Condition,
    Count,
    Figure,
    Group,
    Made,
    Named,
    Noun,
    Several,
    Term,
    Which,
    Words,
)

_FITS = 0.6  # how well words must fit a field or parameter to mean it
KEYS = frozenset(map(stem, ("id", "identifier", "code", "key", "number")))
"""Words that ask for what machines know a thing by."""

_BOUNDING = frozenset(
    map(
        stem,
        "min max minimum maximum least most from to until since before after lowest highest earliest latest".split(),
    )
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A tool for the things of a group: its arguments, and the conditions that are left to check on each."""

    tool: IndexedTool
    given: Mapping[str, Json]
    left: tuple[Condition, ...]
    score: float


@dataclass(slots=True)
class Denoter:
    """Works terms out over one runner. `known` are things that were worked out before."""

    box: Toolbox
    runner: Runner
    known: dict[Term, list[Thing]] = field(default_factory=dict)

    @property
    def kinds(self) -> Kinds:
        """The kinds of things of the environment."""
        return kinds_of(self.box)

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

    def _told(self, thing: Thing, words: Words) -> Value:
        """A fact as people tell it: of another thing its name rather than its key."""
        kind = self.kinds.called(words)
        if kind is not None and kind.noun == tuple(map(stem, words)) and kind is not thing.kind:
            try:
                return self.label((yield from self._related(thing, words)))
            except (UnclearError, SetbackError):
                pass  # a fact that is only called like a kind
        value = yield from self.fact(thing, words)
        named = [
            row[other.name]
            for tool, row in thing.pieces
            for one in tool.fields
            for other in tool.fields
            if row.get(one.name) == value and row.get(other.name) is not None
            if one.key or kind is not None or looks_like_code(str(value))
            if LABELS & set(other.names) and set(one.names) < set(other.names) and not LABELS & set(one.names)
        ]
        return named[-1] if named and not KEYS & set(map(stem, words)) else value

    def called(self, thing: Thing) -> Json:
        """What a thing is called: as it was named, or else by its label, or else by its key."""
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

    def fact(self, thing: Thing, words: Words, *, missing: bool = False) -> Value:
        """A fact of a thing, from what was seen of it or by looking it up; None when `missing` allows for it.

        Raises:
            UnclearError: no tool tells it.
            SetbackError: the environment refused.
        """
        seen = max(
            (
                (self.likeness(words, one), -at, tool, row, one)
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
            fields = [(self.likeness(words, one), one) for one in tool.fields]
            score, one = max(fields, key=lambda pair: pair[0], default=(0.0, None))
            if argument is not None and one is not None and score > _FITS:
                looked.append((score, -at, tool, parameter, argument, one))
        best = max(looked, key=lambda entry: entry[:2], default=None)
        if (
            seen is not None
            and seen[0] > _FITS
            and not (stale and best)
            and (best is None or seen[0] >= best[0] - 0.02)
        ):
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

    def likeness(self, words: Words, one: Field | Parameter) -> float:
        """How well words mean a field or a parameter, from 0 to 1."""
        spoken = bag_of(" ".join(words))
        bounding = _BOUNDING if isinstance(one, Parameter) else frozenset()
        names = {word: weight for word, weight in one.names.items() if word not in bounding or word in spoken}
        if not names:
            return self.box.match(spoken, one.words)  # "earliest": what it bounds stands in the description
        told = {word: weight for word, weight in one.words.items() if weight == 1.0 or isinstance(one, Field)}
        fit = max(_alike(self.box, spoken, names), 0.95 * _alike(self.box, spoken, told))
        if isinstance(one, Field) and one.key and not KEYS & spoken.keys():
            fit *= 0.8  # people rarely ask for what only machines know a thing by
        return fit if self.box.closest(_head(words), one.words) > 0.5 else 0.7 * fit

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

    def _new(self, kind: Kind | None, tool: IndexedTool, row: Row, said: Json = None) -> Thing:
        return Thing(kind=kind, pieces=[(tool, row)], said=said, fresh=self.runner.changes)

    def _named(self, term: Named) -> Generator[Step, Observation, Thing]:
        kind = self.kinds.known.get(term.noun) if term.noun else None
        if term.noun is not None and (kind is None or term.within):
            entry = yield from self._entry(term)
            if entry is not None:
                return entry
        if term.noun is not None and kind is None:
            return Thing(kind=None, said=term.value, fresh=self.runner.changes)
        for one in [kind] if kind is not None else self.kinds.known.values():
            found = yield from self._by_name(one, term)
            if found is not None:
                return found
        raise UnclearError(f"nothing is called {term.text}")

    def _of_one_kind(self, term: Several) -> Found:
        """Things that are only named, as things of the first kind that has them all."""
        for kind in self.kinds.known.values():
            found: list[Thing] = []
            for part in term.parts:
                thing = yield from self._by_name(kind, part)
                if thing is None:
                    break
                found.append(thing)
            if len(found) == len(term.parts):
                return found
        raise UnclearError("things of different kinds")

    def _entry(self, term: Named) -> Generator[Step, Observation, Thing | None]:
        """A part of a document, or an entry in a list, by its name."""
        place = bag_of(" ".join(term.within))
        scored = []
        for kind in self.kinds.known.values():
            for tool, parameter in kind.records:
                known = next((one for one in parameter.enum if same_text(one, term.value)), None)
                fit = self.box.match(place, tool.words) if place else 0.0
                if known is not None or (place and not parameter.enum and fit > _FITS):
                    scored.append((fit + 0.2 * (known is not None), tool, parameter, known or str(term.value), kind))
        for _, tool, parameter, argument, kind in sorted(scored, key=lambda entry: -entry[0])[:2]:
            try:
                return self._new(kind, tool, (yield from self._record(tool, parameter, argument)), term.value)
            except SetbackError:
                continue
        return None

    def _by_name(self, kind: Kind, term: Named) -> Generator[Step, Observation, Thing | None]:
        """The thing of a kind that is called so; None when there is none."""
        numeric = not isinstance(term.value, str)
        if not numeric:
            for tool, parameter in kind.searches:
                try:
                    rows = yield from self.runner.rows(Query(tool=tool, given={parameter.name: term.text}), only=1)
                except SetbackError:
                    continue
                target = fold(term.text)
                exact = [row for row in rows if any(fold(v) == target for v in row.values() if isinstance(v, str))]
                if exact:
                    return self._new(kind, tool, exact[0], term.value)
        for tool, parameter in kind.records[:1] if kind.searches and not numeric else kind.records:
            if not (numeric or looks_like_code(term.text) or not kind.searches):
                continue
            if term.noun is None and not (looks_like_code(term.text) and parameter.role == "id"):
                continue
            if parameter.numeric and as_number(str(term.value)) is None:
                continue
            argument = term.value if parameter.numeric == numeric else str(term.value)
            try:
                record = yield from self._record(tool, parameter, argument)
            except SetbackError:
                continue
            return self._new(kind, tool, record, term.value)
        return None

    def _made(self, noun: Noun | None) -> Thing:
        """What orders made or changed, from what they were given and gave, the last one last."""
        changes = self.runner.made
        if noun is not None:
            about = [one for one in changes if set(noun) & set(one[0].nouns)]
            ids = {
                str(row[one.name]) for tool, row in about[:1] for one in tool.fields if one.key and row.get(one.name)
            }
            changes = [one for one in changes if one in about or ids & {str(value) for value in one[1].values()}]
        if not changes:
            raise UnclearError("nothing was made")
        kind = self.kinds.known.get(noun) if noun is not None else None
        return Thing(kind=kind, pieces=list(changes[-1:] if noun is None else changes), fresh=self.runner.changes)

    def _related(self, owner: Thing, words: Words) -> Generator[Step, Observation, Thing]:
        """The thing that a fact of another thing names: `the zone of the airport`."""
        kind = self.kinds.called(words)
        for tool, parameter in kind.records if kind is not None else ():
            argument = yield from self._obtained(owner, tool, parameter)
            if argument is not None:
                return self._new(kind, tool, (yield from self._record(tool, parameter, argument)))
        value = yield from self.fact(owner, words)
        if kind is not None:
            return (yield from self._named(Named(noun=kind.noun, text=str(value), value=value)))
        return Thing(kind=None, said=value, fresh=self.runner.changes)

    def _obtained(self, thing: Thing, tool: IndexedTool, parameter: Parameter) -> Value:
        """What of a thing goes to a parameter, after a look at all its facts when need be; None when nothing does."""
        argument = self.supplied(thing, tool, parameter)
        for record, key in thing.kind.records if thing.kind is not None and argument is None else ():
            own = self.supplied(thing, record, key)
            if own is not None and argument is None and not any(seen is record for seen, _ in thing.pieces):
                thing.pieces.append((record, (yield from self._record(record, key, own))))
                argument = self.supplied(thing, tool, parameter)
        return argument

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

    def _best_sources(self, term: Group, needed: Words = ()) -> Generator[Step, Observation, list[_Source]]:
        """The tools to get the things of a group from, best first, as long as they say as much as the best one.

        Raises:
            UnclearError: no tool lists them.
        """
        sources = [one for one in (yield from self._sources(term)) if one.tool.items or one.given]
        if not sources:
            raise UnclearError(f"nothing lists {' '.join(term.noun)}")
        sources.sort(key=lambda source: -source.score - (0.4 * self._shown(source.tool, needed) if needed else 0.0))
        return [one for one in sources if len(one.left) <= len(sources[0].left)]

    def _sources(self, term: Group) -> Generator[Step, Observation, list[_Source]]:
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
                found.append(_Source(tool=tool, given=given, left=tuple(left), score=score - 0.1 * order))
        return found

    def _shown(self, tool: IndexedTool, words: Words) -> float:
        """How well a list shows a fact of each thing."""
        best = max((self.likeness(words, one) for one in tool.fields if one.item), default=0.0)
        return best if best > _FITS else 0.0

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
            fit = self.likeness(condition.words, parameter)
            if parameter.role != "id" and fit <= _FITS:
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
            return {parameter.name: _typed(value, parameter)} if parameter.role == side else None
        if operator in ("between", "eq") and parameter.role in ("low", "high"):
            twin = next(
                (
                    one
                    for one in tool.parameters
                    if {one.role, parameter.role} == {"low", "high"} and self.likeness(condition.words, one) > _FITS
                ),
                None,
            )
            if twin is None:
                return None
            low, high = (parameter, twin) if parameter.role == "low" else (twin, parameter)
            upper = condition.upper if operator == "between" else value
            return {low.name: _typed(value, low), high.name: _typed(upper, high)}
        if operator == "between" or parameter.role in ("low", "high", "flag"):
            return None
        if operator == "like" or isinstance(value, Term):
            other = yield from self.thing(value)
            argument = yield from self._obtained(other, tool, parameter)
            if operator == "like":
                if fit <= _FITS and not self._leads_to(other, condition.words, tool, parameter):
                    return None
                argument = argument if argument is not None else (yield from self.fact(other, condition.words))
            elif argument is None and fit > _FITS:
                argument = other.said
            return {parameter.name: _typed(argument, parameter)} if argument is not None else None
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
        return {parameter.name: _typed(value, parameter)} if fit > _FITS else None

    def _leads_to(self, thing: Thing, words: Words, tool: IndexedTool, parameter: Parameter) -> bool:
        """Whether the fact of a thing that `words` mean is what goes to a parameter."""
        fields = [(self.likeness(words, one), source, one) for source, _ in thing.pieces for one in source.fields]
        fit, source, best = max(fields, key=lambda entry: entry[0])
        links = self.box.links.get((tool.name, parameter.name), ())
        return fit > _FITS and any(link.tool is source and link.field is best for link in links)

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
        if one is None or fit < _FITS:
            raise UnclearError(f"nothing is {term.adjective}")
        return replace(term, words=tuple(one.name.split("_")), more=more, adjective="")

    def _ranked(self, group: Group, words: Words, more: bool) -> Generator[Step, Observation, Thing | None]:
        """The first of a ranking by a fact, when some tool ranks just these things by it."""
        rankings = []
        for source in (yield from self._sources(group)):
            order = next((one for one in source.tool.parameters if one.role == "order"), None)
            if order is None or source.left:
                continue
            fit, _, measured = max(
                ((self.likeness(words, one), -at, one) for at, one in enumerate(source.tool.fields)),
                key=lambda entry: entry[:2],
            )
            upward, downward = rising_and_falling(order)
            told = set(measured.names) <= set(source.tool.words)
            if fit > _FITS and told and upward is not None and downward is not None:
                rankings.append((fit, source, {**source.given, order.name: upward if more else downward}))
        if not rankings:
            return None
        _, source, given = max(rankings, key=lambda entry: entry[0])
        rows = yield from self.runner.rows(Query(tool=source.tool, given=given), only=1)
        return self._new(self.kinds.known[group.noun], source.tool, rows[0]) if rows else None

    def _count(self, of: Term) -> Value:
        of = flattened(of) if isinstance(of, Group) else of
        if isinstance(of, Group) and of.of is None:
            for source in (yield from self._best_sources(of)):
                number = yield from self._number(source)
                if number:
                    return number
        return len((yield from self.things(of)))

    def _number(self, source: _Source) -> Value:
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

    def _figure(self, term: Figure) -> Value:
        if isinstance(term.of, Group) and term.of.of is None:
            words = (term.summary, *term.words)
            for source in (yield from self._sources(term.of)):
                if source.tool.items or source.left or source.tool.required:
                    continue
                fields = [(self.likeness(words, one), at, one) for at, one in enumerate(source.tool.fields)]
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


def _alike(box: Toolbox, spoken: Bag, told: Bag) -> float:
    """How much two bags of words mean the same: the harmonic mean of what each covers of the other."""
    even = dict.fromkeys(told, 1.0)
    one, other = box.match(spoken, even), box.match(even, spoken)
    return 2 * one * other / (one + other) if one and other else 0.0


def _head(words: Words) -> str:
    """The stem of the word that says what a fact is: `status` of `booking status`, `size` of `size in bytes`."""
    end = next((at for at, word in enumerate(words) if at and word in ("of", "in", "per")), len(words))
    return stem(next((word for word in reversed(words[:end]) if not word.isdigit()), words[-1]))


def _is_tighter(condition: Condition, bound: Json) -> bool:
    """Whether a bound leaves fewer than another one did on the same side."""
    value = condition.value
    if not isinstance(value, int | float) or not isinstance(bound, int | float):
        return False
    return value >= bound if condition.operator == "ge" else value <= bound if condition.operator == "le" else False


def _typed(value: Json, parameter: Parameter) -> Json:
    """A value in the type of a parameter."""
    if parameter.numeric:
        number = as_number(value) if isinstance(value, str) else value
        return (
            int(number)
            if isinstance(number, float) and number.is_integer() and "integer" in parameter.types
            else number
        )
    return str(value) if not isinstance(value, str) and "string" in parameter.types else value
