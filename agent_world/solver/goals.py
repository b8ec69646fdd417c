"""What each field of the answer asks for, and the readings of the tools that could give it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from agent_world.environments.model import Json
from agent_world.solver.fields import Bag, Field, Parameter, bag_of, merge
from agent_world.solver.index import IndexedTool, Toolbox
from agent_world.solver.lexicon import lexicon, stem
from agent_world.solver.model import Clause, Compare, Constraint, Extreme, Mention, Summary, mark_of, weight_of
from agent_world.solver.places import LABELS
from agent_world.solver.plan import Plan, Planner
from agent_world.solver.query import Detail, Order, Place, Query
from agent_world.solver.reading import read_phrase

Mode = Literal["value", "list", "count", "sum", "mean"]

_SUMMARY_WORDS = frozenset(
    map(
        stem,
        tuple(
            (
                "number count total sum average mean overall altogether combined together whether difference how"
                " many much values respectively final amount rounded decimal decimals places whole such exactly"
                " all"
            ).split()
        ),
    )
)

_PLAIN = frozenset(map(stem, ("count", "total", "number", "amount")))
_MEAN = frozenset(map(stem, ("average", "mean", "avg")))
_SUM = frozenset(map(stem, ("total", "sum", "overall", "combined")))
IDENTITY_ASKED = frozenset(map(stem, ("id", "identifier", "code", "reference")))
"""Words that ask for what a thing is known by to machines."""


_SAID: Mapping[Summary, frozenset[str]] = {"count": _PLAIN, "mean": _MEAN, "sum": _SUM}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One field of the answer: `words` is what is left of its text when names, comparisons and sums are taken out."""

    name: str
    kind: str
    item_kind: str | None
    text: str
    phrase: Clause
    words: Bag

    @property
    def numeric(self) -> bool:
        """Whether numbers are wanted."""
        return (self.item_kind or self.kind) in ("integer", "number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One way to get a goal: the rows of `query`, what is taken from them and how it is summed up.

    `fit` is how well what is taken is what was asked for, `score` the worth of it all.
    """

    query: Query
    mode: Mode
    place: Place | None
    score: float
    fit: float = 0.0
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A goal in its context: the constraints that hold for it, the words around it, and the sums asked for.

    `flags` are the words that may set a yes-or-no parameter.
    `ranked` says that a superlative belongs to the goal itself, `added` that values are added up for sure.
    """

    words: Bag
    around: Bag
    head: Bag
    kind: str
    numeric: bool
    constraints: tuple[Constraint, ...]
    summaries: frozenset[Summary]
    own: frozenset[Summary]
    flags: Bag = field(default_factory=dict)
    negated: bool = False
    ranked: bool = False
    added: bool = False


def goals_of(schema: Mapping[str, Json], box: Toolbox, known: Sequence[str]) -> list[Goal]:
    """The goals in the order of the schema; `known` are the names in the instruction."""
    return [_goal(name, one, box, known) for name, one in schema.get("properties", {}).items()]


def _goal(name: str, schema: Mapping[str, Json], box: Toolbox, known: Sequence[str]) -> Goal:
    text = str(schema.get("description") or name.replace("_", " "))
    phrase = read_phrase(text, box, known)
    kind = schema.get("type", "string")
    kind = next((one for one in kind if one != "null"), "string") if isinstance(kind, list) else kind
    inner = schema.get("items", {}).get("type", "string") if kind == "array" else None
    if kind == "boolean":
        phrase = replace(phrase, constraints=tuple(one for one in phrase.constraints if not is_flag(one, box)))
    words: dict[str, float] = {}
    weight = 1.0
    for word in phrase.content:
        if (word not in _SUMMARY_WORDS or box.names_field(word)) and word not in words:
            words[word] = weight
            weight = max(0.3, weight * 0.85)
    for word in bag_of(name):
        if word not in _SUMMARY_WORDS and (word not in words) and not phrase.mentions:
            words[word] = 0.35
    return Goal(name=name, kind=kind, item_kind=inner, text=text, phrase=phrase, words=words)


def is_flag(constraint: Constraint, box: Toolbox) -> bool:
    """Whether a value is the name of something that tools tell yes or no about: "is it approved?"."""
    return (
        isinstance(constraint, Mention)
        and constraint.kind == "value"
        and any(
            "boolean" in one.types and stem(constraint.text) in one.names for tool in box.tools for one in tool.fields
        )
    )


def align(goals: Sequence[Goal], clauses: Sequence[Clause], box: Toolbox) -> dict[str, list[tuple[Clause, float]]]:
    """For each goal the clauses it may belong to, best first, with how well they fit."""
    asking = [clause for clause in clauses if clause.kind == "ask"]
    aligned: dict[str, list[tuple[Clause, float]]] = {}
    for number, goal in enumerate(goals):
        scored = []
        for clause in clauses:
            spoken = merge(
                clause.content,
                clause.head,
                *(one.context for one in clause.constraints if not isinstance(one, Mention)),
            )
            score = _overlap(box, goal, spoken)
            shared = {one.text for one in goal.phrase.mentions} & {one.text for one in clause.mentions}
            score += 0.4 * len(shared)
            compared = {mark_of(one) for one in goal.phrase.constraints if isinstance(one, Compare)}
            score += 0.4 * len(compared & {mark_of(one) for one in clause.constraints if isinstance(one, Compare)})
            if any(isinstance(one, Extreme) for one in goal.phrase.constraints) and any(
                isinstance(one, Extreme) for one in clause.constraints
            ):
                score += 0.2
            score += 0.25 * len(goal.phrase.summaries & clause.summaries)
            if clause.kind == "ask":
                score += 0.25
                if len(goals) > 1 and len(asking) > 1:
                    score += 0.15 * (1 - abs(number / (len(goals) - 1) - asking.index(clause) / (len(asking) - 1)))
            scored.append((clause, score))
        aligned[goal.name] = sorted(scored, key=lambda pair: (-pair[1], -pair[0].position))
    return aligned


def _overlap(box: Toolbox, goal: Goal, spoken: Bag) -> float:
    """How much a clause speaks of what a goal asks for."""
    total = covered = 0.0
    for word, weight in goal.words.items():
        telling = weight * box.weight(word)
        total += telling
        near = 1.0 if word in spoken else 0.0
        if not near:
            mine = dict(box.near(word))
            near = max(
                (
                    min(1.0, mine[known]) * 0.8
                    for other in spoken
                    for known, score in box.near(other)
                    if known in mine and score > 0.7
                ),
                default=0.0,
            )
        covered += telling * near
    return covered / total if total else 0.0


def readings(wish: Wish, planner: Planner) -> list[Reading]:
    """All ways to get what is wished, best first."""
    found: list[Reading] = []
    for tool in planner.box.reading():
        for spread in (None, *_spreads(wish, tool, planner)):
            plan = planner.build(tool, wish.constraints, spread=spread)
            if plan.missing:
                continue
            plan = _flagged(plan, wish, planner)
            base = plan.score - sum(0.8 * weight_of(one) for one in plan.left) - 0.07 * plan.query.calls()
            base += 0.25 * planner.box.touch(wish.around, tool.nouns)
            extremes = [one for one in plan.left if isinstance(one, Extreme)]
            plain = None
            if any(isinstance(one, Extreme) for one in wish.constraints) and not wish.ranked:
                plain = planner.build(
                    tool, [one for one in wish.constraints if not isinstance(one, Extreme)], spread=spread
                )
            for place, mode, whole, score in _targets(wish, tool, plan.query, planner):
                if plain is not None and mode in ("count", "sum", "mean"):
                    # What is counted or added up is not the one thing that a superlative beside it singles out.
                    worth = base + plain.score - plan.score + 0.5
                    noise = planner.chance("target", tool.name, mode, place.field.name if place else "")
                    found.append(
                        Reading(
                            fit=score,
                            query=plain.query,
                            mode=mode,
                            place=place,
                            score=worth + 2 * score + noise,
                            whole=whole,
                        )
                    )
                    continue
                query, extra = _ordered(plan.query, wish, place, whole, extremes, planner)
                if place is not None and query.order is not None and query.order.place == place:
                    extra += 0.2  # the largest of what is asked for
                if mode == "value" and query.spread and query.order is None:
                    extra -= 1.5
                if mode == "value" and tool.items and not whole and not (query.keeps or query.order or query.wanted):
                    extra -= 0.35  # nothing says which row is meant
                if place is not None and place.detail is None and place.field.name in query.given and not tool.items:
                    extra -= 0.8
                elif place is not None and place.field.name in query.given:
                    extra -= 0.3
                noise = planner.chance(
                    "target",
                    tool.name,
                    spread.name if spread else "",
                    mode,
                    place.field.name if place else "",
                    bool(place and place.detail),
                )
                found.append(
                    Reading(
                        fit=score,
                        query=query,
                        mode=mode,
                        place=place,
                        score=base + 2 * score + extra + noise,
                        whole=whole,
                    )
                )
    return sorted(found, key=lambda reading: -reading.score)


def _flagged(plan: Plan, wish: Wish, planner: Planner) -> Plan:
    """Sets the yes-or-no parameters that the wish speaks of."""
    given = dict(plan.query.given)
    score = plan.score
    for parameter in plan.query.tool.parameters:
        if parameter.role == "flag" and parameter.name not in given:
            names = {word: weight for word, weight in parameter.names.items() if word not in IDENTITY_ASKED}
            said = max((planner.box.closest(word, names) for word in wish.flags), default=0.0)
            if said > 0.9:
                given[parameter.name] = not wish.negated
                score += 0.6
    return replace(plan, score=score, query=replace(plan.query, given=given))


def _spreads(wish: Wish, tool: IndexedTool, planner: Planner) -> Iterator[Parameter]:
    """Parameters with few allowed values that the wish asks to choose among."""
    given = [one.value for one in wish.constraints if isinstance(one, Mention) and one.kind == "value"]
    for parameter in tool.parameters:
        if parameter.role == "enum" and not any(value in parameter.enum for value in given):
            if planner.box.touch(merge(wish.words, wish.head), parameter.names) > 0.55 and any(
                isinstance(one, Extreme) for one in wish.constraints
            ):
                yield parameter


def _targets(wish: Wish, tool: IndexedTool, query: Query, planner: Planner):
    """What of the rows could be the answer: (place, mode, whole call, score)."""
    box = planner.box
    listed = tool.items is not None
    many = wish.kind == "array"
    for one in tool.fields:
        if one.name == "total" and listed and not one.item:
            if query.spread and wish.numeric:
                yield Place(field=one), "value", True, 0.5 + 0.4 * box.match(wish.words, tool.nouns)
            continue
        if listed and not one.item and tool.items:
            yield from _field_targets(wish, one, tool, None, planner, whole=True)
        else:
            yield from _field_targets(wish, one, tool, None, planner, whole=False)
    ranked = query.order is not None and (query.order.place.detail is not None or query.order.place.field.item)
    for name in query.spread if not ranked else ():
        parameter = tool.parameter(name)
        if parameter is not None and not wish.numeric:
            one = Field(name=name, types=parameter.types, item=True, names=parameter.names, words=parameter.words)
            score = box.match(wish.words, parameter.words)
            if score > 0.4:
                yield Place(field=one), "list" if many else "value", True, score + 0.1
    for detail in box.details.get(tool.name, ()):
        for one in detail[0].fields:
            if not one.item and not detail[0].items:
                yield from _field_targets(wish, one, detail[0], detail, planner, whole=False)
    singled = wish.ranked and "count" not in wish.own
    if listed and wish.numeric and not many and not singled and not wish.own & {"sum", "mean"}:
        noun = box.match(wish.words, tool.nouns) if wish.words else 0.6
        explicit = 0.15 if "count" in wish.own else 0.0 if "count" in wish.summaries else -0.35
        grouped = 0.3 if any(one.counts and one.item for one in tool.fields) else 0.0
        searched = 0.4 if query.wanted else 0.0  # what carries a name is rarely what is counted
        foreign = 0.3 if noun < 0.25 else 0.0
        yield None, "count", False, 0.4 + 0.4 * noun + explicit - grouped - searched - foreign


def suits(wish: Wish, one: Field | Parameter, nouns: Bag, box: Toolbox) -> float | None:
    """How well a field, or an argument that was given, is what is wished for, about 0 to 1; None when it is not.

    `nouns` are what the tool is about that it belongs to.
    """
    about = 0.7 if wish.kind == "string" and LABELS & set(one.names) else 0.45
    recall = box.match(wish.words, merge(one.words, {word: about * weight for word, weight in nouns.items()}))
    precision = box.match(one.names, merge({word: 0.6 for word in (*wish.around, *wish.head)}, wish.words))
    asked = wish.own or wish.summaries
    if any(summary in asked and words & set(one.names) for summary, words in _SAID.items()):
        precision = max(precision, recall)
    counts, key = (one.counts, one.key) if isinstance(one, Field) else (False, one.role == "id")
    if not wish.words and counts and wish.numeric:
        recall = precision = 0.5 + 0.5 * box.match(one.names, nouns)
    told = box.touch(wish.head, one.words) if wish.head else 0.0
    if max(recall, precision, told) < 0.3:
        return None
    score = 0.6 * recall + 0.3 * precision + 0.1 * told
    if one.numeric and wish.kind == "string":
        score -= 0.35
    if (key or IDENTITY_ASKED & one.words.keys()) and not IDENTITY_ASKED & (wish.words.keys() | wish.head.keys()):
        if wish.numeric and key:
            return None
        # "the flight that was booked" may well be its id; "the author of the book" is not the id of the author's book.
        score -= 0.12 if next(iter(wish.words), "") in one.names else 0.35 if key else 0.25
    return score


def _field_targets(wish: Wish, one: Field, tool: IndexedTool, detail: Detail | None, planner: Planner, *, whole: bool):
    box = planner.box
    many = wish.kind == "array"
    if wish.numeric and not one.numeric and one.types:
        return
    if wish.kind == "boolean" and "boolean" not in one.types:
        return
    if one.types & {"array", "object"} and not many:
        return
    score = suits(wish, one, tool.nouns, box)
    if score is None:
        return
    if detail is not None:
        score += 0.1 * box.touch(merge(wish.words, wish.around), detail[2].names) - 0.06
    if "count" in wish.own and wish.words:
        noun = next(iter(wish.words))
        plain = bool(_PLAIN & set(one.names)) and box.match(wish.words, one.words) > 0.7
        score += 0.08 if box.closest(noun, one.names) > 0.7 or plain else -0.25
    place = Place(field=one, detail=detail)
    summaries = wish.own or wish.summaries
    summed = one.numeric and wish.numeric and not whole
    said = {"mean": bool(_MEAN & set(one.words)), "sum": bool(_SUM & set(one.words))}
    if many:
        yield place, "list", whole, score
        return
    if "mean" in summaries and wish.numeric:
        yield place, "value", whole, score + (0.15 if said["mean"] else -0.5)
        if summed and not said["mean"] and not one.counts:
            yield place, "mean", False, score + (0.05 if detail is None else -0.1)
    elif "sum" in summaries and wish.numeric:
        yield (
            place,
            "value",
            whole,
            score
            + (0.1 if said["sum"] else -0.1 if whole or (one.counts and not tool.items and detail is None) else -0.3),
        )
        if summed and (not said["sum"] or wish.added):
            yield place, "sum", False, score + (0.25 if said["sum"] else 0.05)
    else:
        yield (
            place,
            "value",
            whole,
            score
            + (0.05 if one.counts and "count" in summaries else 0.0)
            - (0.3 if said["mean"] and wish.numeric else 0.0),
        )


def _ordered(query: Query, wish: Wish, place: Place | None, whole: bool, extremes: Sequence[Extreme], planner: Planner):
    """Uses a superlative that found no place.

    The field asked for may itself be the lowest or highest of something, or the number of rows is what is compared.
    """
    if not extremes:
        slow = query.order is not None and not query.sorted
        return query, -0.15 * slow - 0.15 * bool(slow and query.order.place.detail)
    extreme = extremes[0]
    if place is not None and place.field.numeric and wish.numeric:
        if planner.box.closest(stem("highest" if extreme.more else "lowest"), place.field.words) > 0.7:
            return query, 1.8 + 0.4 * planner.places.measured(extreme, place.field)
    if query.spread and query.tool.items and query.order is None:
        near = planner.box.touch(extreme.context, query.tool.nouns)
        total = next((one for one in query.tool.fields if one.name == "total"), None)
        if near > 0.5 and total is not None and whole:
            return replace(query, order=Order(place=Place(field=total), more=extreme.more, count=extreme.count)), 0.8
    return query, 0.0


def adds_up(text: str) -> bool:
    """Whether a text asks for a sum in so many words; "total" may also be the name of a value."""
    return bool(re.search(r"\b(sum|add(s|ed)? up|altogether|combined|in all|together)\b", text.lower()))


def residual(clause: Clause) -> Bag:
    """What a clause is about apart from its names, as words of a wish."""
    lexemes = lexicon()
    return {
        word: weight
        for word, weight in clause.content.items()
        if word not in _SUMMARY_WORDS and word not in lexemes.stop
    }
