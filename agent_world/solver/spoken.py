"""Lets what was parsed as noun phrases settle goals, decide conditions and say what orders are about.

What has no such form, or cannot be worked out so, is left to the readings of the tools.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step
from agent_world.solver.clause import POLITE, read_clause
from agent_world.solver.denoting import Denoter
from agent_world.solver.discourse import phrases
from agent_world.solver.goals import Goal
from agent_world.solver.grammar import Grammar, Parsed
from agent_world.solver.kinds import Kinds
from agent_world.solver.mentions import Token, tokenise
from agent_world.solver.model import Clause
from agent_world.solver.run import SetbackError
from agent_world.solver.terms import Attribute, Back, Best, Count, Figure, Group, Made, Named, Several, Term, Which
from agent_world.solver.things import Thing, UnclearError

if TYPE_CHECKING:
    from agent_world.solver.situation import Situation

_MANY = frozenset("each every all both".split())
_LOOKING = frozenset("find look compare note consider".split())
_LOOKING_AT = frozenset((("start", "with"), ("begin", "with"), ("go", "through"), ("go", "over"), ("check", "which")))
_TELLING = frozenset("tell give report state list show name say return let provide get work pick choose".split())
_TO_WHOM = frozenset("me us know down out up please also".split())
_DEFINITE = frozenset("the its their his her which what how number all".split())
_WONDERING = re.compile(
    r"\b(?:need|know|looking for|interested in|wonder(?:ing)?|question(?: \w+)?)(?: to know)?(?: is)?"
    r" (?:the (?!\w+ (?:to|for) )|its |which |what |how |number of )"
)
_AFTER_IT = frozenset("as to for please with instead and , .".split())
_OPENING = frozenset("if unless provided that should in case assuming supposing only as long and but then".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An order about one thing that was worked out: its clause, with the thing by a name that is known."""

    clause: Clause
    thing: Named | None


def phrased(situation: Situation, goal: Goal) -> Generator[Step, Observation, Json]:
    """The value of a goal whose text is a noun phrase; None when it is not, or when nothing tells."""
    text = goal.text[:1].lower() + goal.text[1:] if goal.text[1:2].islower() else goal.text
    tokens = tokenise(text, known=situation.names)
    grammar = Grammar(situation.denoter.kinds, tokens)
    found = grammar.phrase(0)
    if found is None or not _is_whole(tokens, found.end):
        words = grammar.fact_words(0)
        if not situation.runner.made or not words:
            return None
        found = Parsed(Attribute(words=words, of=Made()), len(tokens))  # "order total": of what was just done
    for term in situation.readings_of(found.term):
        if not is_restricted(term) and found.term not in situation.discourse.heard:
            continue  # the question may say more about which of them are meant
        try:
            return (yield from _answer(situation.denoter, goal, term))
        except (UnclearError, SetbackError):
            continue
    return None


def is_restricted(term: Term) -> bool:
    """Whether a term says which things it is about, and not just of what kind."""
    if isinstance(term, Group):
        return bool(term.conditions) or term.of is not None or not term.plural
    return is_restricted(term.of) if isinstance(term, Best | Attribute | Count | Figure | Which) else True


def judged(situation: Situation, clause: Clause) -> Generator[Step, Observation, bool | None]:
    """Whether a condition holds that says something of a thing or a fact; None when it has another form."""
    tokens = clause.tokens
    start = next((at for at, token in enumerate(tokens) if token.low not in _OPENING), len(tokens))
    if start >= len(tokens):
        return None
    said = Grammar(situation.denoter.kinds, tokens).statement(start)
    if said is None or not _is_whole(tokens, said[2]):
        return None
    subject, condition, _ = said
    if isinstance(subject, Back) and subject.noun is None and situation.discourse.facts:
        subject = situation.fact_before(clause)
    try:
        subject = situation.discourse.resolved(subject)
        if condition.operator == "marked":
            thing = yield from situation.denoter.thing(subject)
            return (yield from situation.denoter.holds(thing, condition))
        if isinstance(subject, Back):
            return None
        value = yield from situation.denoter.value(subject)
        return (yield from situation.denoter.meets(value, condition))
    except (UnclearError, SetbackError):
        return None


def is_question(situation: Situation, clause: Clause) -> bool:
    """Whether a clause asks to be told or looks something up, whatever its verb may order elsewhere."""
    tokens = clause.tokens
    start = next((at for at, token in enumerate(tokens) if token.low not in POLITE), len(tokens))
    wondering = bool(_WONDERING.search(clause.text.lower()))
    if start < len(tokens) and tokens[start].kind == "word" and tokens[start].low in _LOOKING:
        return True
    if start + 1 < len(tokens) and (tokens[start].low, tokens[start + 1].low) in _LOOKING_AT:
        return True
    if wondering:
        return True
    if start < len(tokens) and tokens[start].low == "take":
        found = Grammar(situation.denoter.kinds, tokens).phrase(start + 1)
        return found is not None and found.end == len(tokens) and isinstance(found.term, Several | Group)
    if start >= len(tokens) or tokens[start].low not in _TELLING:
        return False
    at = start + 1
    while at < len(tokens) and tokens[at].low in _TO_WHOM:
        at += 1
    grammar = Grammar(situation.denoter.kinds, tokens)
    if at < len(tokens) and tokens[at].low in ("that", "those"):
        told = {fact.words for _, fact in situation.discourse.facts}
        return grammar.lists_facts(at + 1) or grammar.fact_words(at + 1) in told
    if at >= len(tokens) or (tokens[at].kind == "word" and tokens[at].low not in _DEFINITE):
        return False
    found = grammar.phrase(at)
    if found is None:
        return grammar.lists_facts(at)
    if isinstance(found.term, Back):
        return False
    handed = found.end < len(tokens) and tokens[found.end].low in ("to", "as")
    return not handed


def targets(situation: Situation, clause: Clause) -> Generator[Step, Observation, list[Target]]:
    """The order of a clause once for each thing that it is about, which it may only describe.

    An order about what it names, and nothing else, comes back as it was.
    """
    clause = _spelt_out(situation, clause)
    grammar = Grammar(situation.denoter.kinds, clause.tokens)
    versions: list[tuple[list[tuple[int, int, Thing, Named]], Named | None]] = [([], None)]
    for start, (term, end) in phrases(grammar):
        if not _is_described(term, clause.tokens, start, situation.denoter.kinds):
            continue
        many = isinstance(term, Several) or (isinstance(term, Group | Back) and term.plural)
        try:
            things = yield from situation.denoter.things(situation.discourse.resolved(term))
        except (UnclearError, SetbackError):
            continue
        if not things or (len(things) > 1 and not many):
            continue
        named = [(start, end, thing, _name(situation.denoter, thing)) for thing in things]
        versions = [
            ([*spans, one], one[3] if many or last is None else last) for spans, last in versions for one in named
        ]
    if versions == [([], None)]:
        return [Target(clause=clause, thing=None)]
    result = []
    for spans, last in versions:
        tokens = list(clause.tokens)
        for start, end, thing, name in reversed(spans):
            tokens[start:end] = _renamed(name, tokens[start:end])
            situation.denoter.known[name] = [thing]
            for tool, row in thing.pieces:
                keys = {one.name: row[one.name] for one in tool.fields if one.key and one.name in row}
                situation.runner.note(tool, keys, frozenset({name.text}))
        again = read_clause(tokens, situation.box, clause.position)
        result.append(Target(clause=replace(again, kind=clause.kind), thing=last))
    return result


def _spelt_out(situation: Situation, clause: Clause) -> Clause:
    """An order that only says "it" with what was named last, as long as nothing was made that could be meant."""
    at = next((at for at, token in enumerate(clause.tokens) if token.low in ("it", "that")), 0)
    alone = at + 1 == len(clause.tokens) or clause.tokens[min(at + 1, len(clause.tokens) - 1)].low in _AFTER_IT
    if not at or not alone or situation.deeds or any(one.kind == "name" for one in clause.mentions):
        return clause
    named = [
        one
        for other in situation.clauses
        if other.position < clause.position
        for one in other.mentions
        if one.kind == "name"
    ]
    if not named:
        return clause
    name = Token(text=named[-1].text, kind="name", quoted=True, start=clause.tokens[at].start)
    tokens = [*clause.tokens[:at], name, *clause.tokens[at + 1 :]]
    return replace(read_clause(tokens, situation.box, clause.position), kind=clause.kind)


def _answer(denoter: Denoter, goal: Goal, term: Term) -> Generator[Step, Observation, Json]:
    if goal.kind != "array":
        if isinstance(term, Group) and term.plural:
            raise UnclearError("more than one")
        if isinstance(term, Back | Several) or (goal.numeric and isinstance(term, Named | Best | Group)):
            raise UnclearError("no value")
        return (yield from denoter.value(term))
    if isinstance(term, Attribute):
        things = yield from denoter.things(term.of)
        return (yield from denoter.facts(things, term.words))
    if isinstance(term, Count | Figure | Back):
        raise UnclearError("no list")
    things = yield from denoter.things(term)
    return [denoter.called(thing) for thing in things]


def _is_whole(tokens: Sequence[Token], end: int) -> bool:
    return end >= len(tokens) or tokens[end].kind == "mark"


def _is_described(term: Term, tokens: Sequence[Token], start: int, kinds: Kinds) -> bool:
    """Whether a phrase needs working out before an order about it can be made."""
    if isinstance(term, Named):
        return term.noun in kinds.known and not term.within
    if isinstance(term, Several):
        return term.parts[0].noun in kinds.known
    if isinstance(term, Group):
        return bool(term.conditions) or (tokens[start].low in _MANY and term.plural)
    if isinstance(term, Attribute):
        return kinds.called(term.words) is not None  # not "on behalf of", "by means of"
    if isinstance(term, Back):
        return tokens[start].low in _MANY if term.plural else term.noun is not None  # "each of them", "that song"
    return isinstance(term, Best)


def _name(denoter: Denoter, thing: Thing) -> Named:
    """A name for a thing that no other thing of its kind has."""
    label = denoter.called(thing)
    noun = thing.kind.noun if thing.kind is not None else None
    return Named(noun=noun, text=str(label), value=label)


def _renamed(name: Named, instead: Sequence[Token]) -> list[Token]:
    """The tokens that call a thing by a name in place of what described it; a number keeps a noun before it."""
    start = instead[0].start
    if isinstance(name.value, str):
        return [Token(text=name.text, kind="name", quoted=True, start=start)]
    noun = Token(
        text=next(word for word in reversed(name.noun or ("number",)) if word.isalpha()), kind="word", start=start
    )
    return [noun, Token(text=name.text, kind="number", value=name.value, start=start)]
