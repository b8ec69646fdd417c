"""Finds things by what they are called, or by what is known of another thing."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from agent_world.rollouts.model import Observation, Step
from agent_world.solver.fields import bag_of
from agent_world.solver.fitting import FITS, KEYS
from agent_world.solver.kinds import Kind
from agent_world.solver.lexicon import fold, stem
from agent_world.solver.mentions import looks_like_code
from agent_world.solver.places import LABELS, as_number, same_text
from agent_world.solver.query import Query
from agent_world.solver.run import SetbackError
from agent_world.solver.terms import Named, Noun, Several, Words
from agent_world.solver.things import Facts, Found, Thing, UnclearError, Value


@dataclass(slots=True)
class Names(Facts):
    """Finds things by name over one runner."""

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
                if known is not None or (place and not parameter.enum and fit > FITS):
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
