"""What an instruction speaks of: the sets and the single things in it, and what later words point back to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from agent_world.solver.grammar import Grammar, Parsed, graded
from agent_world.solver.kinds import Kinds
from agent_world.solver.mentions import Token
from agent_world.solver.terms import (
    Attribute,
    Back,
    Best,
    Count,
    Figure,
    Group,
    Named,
    Noun,
    Several,
    Term,
    Which,
    noun_of,
)

_TOPICAL = frozenset("through up among from between of compare take look at over check with for consider".split())


@dataclass(slots=True)
class Discourse:
    """The terms of an instruction in order.

    `topics` are sets that the rest is about, `sets` all of them, `picks` the ones that stand out, `names` what is
    named, `facts` what is asked of one thing and where. `acted` are the things that orders were about, as they turned
    out, `heard` all terms as they stand.
    """

    topics: list[Term] = field(default_factory=list)
    sets: list[Term] = field(default_factory=list)
    picks: list[Term] = field(default_factory=list)
    names: list[Named] = field(default_factory=list)
    facts: list[tuple[int, Attribute]] = field(default_factory=list)
    acted: list[Term] = field(default_factory=list)
    heard: list[Term] = field(default_factory=list)

    @classmethod
    def of(cls, tokens: Sequence[Token], kinds: Kinds) -> Discourse:
        """The discourse of a text."""
        discourse = cls()
        for at, found in phrases(Grammar(kinds, tokens)):
            before = tokens[at - 1] if at else None
            topical = before is None or before.kind == "mark" or before.low in _TOPICAL
            discourse.hear(found.term, topical, tokens[at].start)
        if discourse.topics and not discourse.picks:
            discourse.picks += compared_by(tokens, discourse.topics[-1])
        return discourse

    def hear(self, term: Term, topical: bool, start: int) -> None:
        """Takes a term in, with those inside it."""
        self.heard.append(term)
        match term:
            case Named():
                self.names.append(term)
            case Several():
                self.names += term.parts
                self.sets.append(term)
                self.topics.append(term)
            case Group():
                if term.of is not None:
                    self.hear(term.of, False, start)
                for condition in term.conditions:
                    if isinstance(condition.value, Term):
                        self.hear(condition.value, False, start)
                if not term.plural and term.conditions:
                    self.picks.append(self.resolved(term))
                elif term.plural and (term.conditions or term.of is not None):
                    self.sets.append(self.resolved(term))
                    if topical:
                        self.topics.append(self.sets[-1])
            case Best():
                self.hear(term.of, True, start)
                self.picks.append(self.resolved(term))
            case Figure():
                self.hear(term.of, topical, start)
                if term.summary in ("highest", "lowest"):
                    picked = Best(of=term.of, words=term.words, more=term.summary == "highest")
                    self.picks.insert(0, self.resolved(picked))
            case Attribute():
                self.hear(term.of, False, start)
                self.facts.append((start, self.resolved(term)))
            case Count() | Which():
                self.hear(term.of, topical, start)

    def with_name(self, text: str) -> Discourse:
        """The same discourse after something was done to what is called so, of whatever kind."""
        return replace(self, acted=[Named(noun=None, text=text, value=text), *self.acted])

    def resolved(self, term: Term) -> Term:
        """The term with what it points back to put in."""
        match term:
            case Back():
                return self._meant(term)
            case Group():
                conditions = tuple(
                    replace(one, value=self.resolved(one.value)) if isinstance(one.value, Term) else one
                    for one in term.conditions
                )
                if isinstance(term.of, Back):
                    base = self._base(term.of)
                    return replace(term, noun=noun_of(base) or term.noun, conditions=conditions, of=base)
                narrowed = self._topic(term) if term.of is None else self.resolved(term.of)
                return replace(term, conditions=conditions, of=narrowed)
            case Best():
                return replace(term, of=self._compared(term))
            case Figure():
                of = self._base(term.of) if isinstance(term.of, Back) else self.resolved(term.of)
                return replace(term, of=of)
            case Attribute() | Count() | Which():
                return replace(
                    term, of=self._single(term.of) if isinstance(term, Attribute | Which) else self.resolved(term.of)
                )
        return term

    def _single(self, term: Term) -> Term:
        """What a fact is asked of: a bare noun means the one that was singled out."""
        if isinstance(term, Group) and not term.conditions and term.of is None:
            return self._meant(Back(noun=term.noun))
        return self.resolved(term)

    def _meant(self, term: Back) -> Term:
        if term.plural:
            return self._base(term) if term.whole else next(iter(reversed(self._fitting(self.sets, term.noun))), term)
        for terms in (self.picks, self.acted, self.names):
            fitting = self._fitting(terms, term.noun)
            if fitting:
                return fitting[-1]
            if terms is self.acted and terms and isinstance(terms[0], Named) and terms[0].noun is None:
                return replace(terms[0], noun=term.noun)
        sets = self._fitting(self.sets, term.noun)
        return sets[-1] if sets and term.noun is not None else term

    def _base(self, term: Back) -> Term:
        """A set as it was before anything was sorted out of it."""
        sets = [one for one in self._fitting(self.sets, term.noun) if not isinstance(one, Group) or one.of is None]
        whole = [one for one in sets if isinstance(one, Several)] if term.whole else []
        return (whole or sets or [term])[-1]

    def _topic(self, term: Group) -> Term | None:
        """The named things that a group with conditions is sorted out of."""
        named = [one for one in self._fitting(self.topics, term.noun) if isinstance(one, Several)]
        return named[-1] if named and term.conditions else None

    def _compared(self, term: Best) -> Term:
        """The things that one of them stands out among."""
        of = term.of
        if isinstance(of, Back):
            return self._base(of)
        if isinstance(of, Group) and not of.conditions and of.of is None:
            topics = self._fitting(self.topics, of.noun)
            return topics[-1] if topics else of
        return self.resolved(of)

    @staticmethod
    def _fitting(terms: Sequence[Term], noun: Noun | None) -> list[Term]:
        """The terms about a kind of thing; names in a row may be names of anything."""
        return [
            one
            for one in terms
            if noun is None or noun_of(one) == noun or (noun_of(one) is None and isinstance(one, Several | Best))
        ]


def compared_by(tokens: Sequence[Token], of: Term) -> list[Best]:
    """The one of several things that a text compares them to find: `which one is denser, A or B`."""
    for at, token in enumerate(tokens):
        following = tokens[at + 1 : at + 3]
        if any(one.low == "than" for one in following):
            continue
        adjective, compared = graded(token.low) if token.kind == "word" else ("", False)
        if adjective:
            return [Best(of=of, words=(), more=True, compared=compared, adjective=adjective)]
    return []


def _phrase(grammar: Grammar, at: int) -> Parsed | None:
    """The noun phrase at a token, or what a question beginning there singles out."""
    if grammar.tokens[at].low in ("which", "what", "whichever") and grammar.tokens[at].kind == "word":
        found = grammar.selection(at + 1)
        if found is not None:
            return found
    return grammar.phrase(at) if grammar.opens(at) else None


def phrases(grammar: Grammar) -> Iterator[tuple[int, Parsed]]:
    """The noun phrases of a text and where they begin, without those inside others."""
    at = 0
    while at < len(grammar.tokens):
        found = _phrase(grammar, at)
        if found is None or found.end <= at:
            at += 1
            continue
        yield at, found
        at = found.end
