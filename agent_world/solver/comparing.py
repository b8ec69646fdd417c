"""Compares two things, and decides conditions and yes-or-no questions."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step
from agent_world.solver.fields import merge
from agent_world.solver.finding import Thinking, first_value
from agent_world.solver.goals import Goal, Wish, readings, residual
from agent_world.solver.model import Clause, Compare, Constraint, Extreme, Mention, mark_of
from agent_world.solver.run import SetbackError, compared
from agent_world.solver.situation import Situation


class Measures(NamedTuple):
    """What two things measure, and whether more of it is what was asked for."""

    first: Json
    second: Json
    upward: bool


def truth(
    situation: Situation, clause: Clause, constraints: Sequence[Constraint]
) -> Generator[Step, Observation, bool]:
    """Whether what a clause says is so; `constraints` are its own and those it refers to."""
    pair = pair_in(situation, constraints, clause.comparative)
    if pair and clause.comparative is not None:
        first, second, upward = yield from _measures(situation, pair, constraints, clause.comparative, {}, clause)
        result = first is not None and second is not None and (first > second) == upward and first != second
        return result != clause.negated
    compares = [one for one in constraints if isinstance(one, Compare)]
    words = {token.low for token in clause.tokens}
    exists = (
        "there" in words
        and bool(words & {"a", "an", "any", "no", "some"})
        and not any(one.operator == "ge" or one.at < 4 for one in compares)
    )
    if compares and not exists:
        for main in compares:
            rest = tuple(one for one in constraints if one is not main)
            numeric = not isinstance(main.value, str)
            wish = Wish(
                words=main.context,
                around=residual(clause),
                head=clause.head,
                kind="number" if numeric else "string",
                numeric=numeric,
                constraints=rest,
                summaries=clause.summaries | {"count"},
                own=frozenset(),
            )
            if main.degrees and not main.context:
                wish = replace(wish, words=_degree_words(situation, main))
            value = yield from first_value(situation, wish)
            if value is not None:
                keep = compared(value, main.operator, main.value, main.upper)
                return keep != clause.negated
        return False
    found = yield from _exists(situation, clause, constraints)
    negated = clause.negated or "no" in words
    return found != negated


def _exists(
    situation: Situation, clause: Clause, constraints: Sequence[Constraint]
) -> Generator[Step, Observation, bool]:
    wish = Wish(
        words={},
        around=residual(clause),
        head=clause.head,
        kind="integer",
        numeric=True,
        constraints=tuple(constraints),
        summaries=frozenset({"count"}),
        own=frozenset({"count"}),
    )
    for query in _by_coverage(situation, wish):
        try:
            rows = yield from situation.runner.rows(query)
        except SetbackError:
            return False
        if not query.tool.items:
            situation.checked += [
                one for one in constraints if mark_of(one) in {str(keep.value) for keep in query.keeps}
            ]
        if len(rows) == 1:
            for name, value in query.given.items():
                situation.runner.note(query.tool, {name: value}, query.origins.get(name, frozenset()))
            situation.runner.note(query.tool, rows[0], query.marks)
        return bool(rows)
    return False


def _by_coverage(situation: Situation, wish: Wish):
    plans = []
    for tool in situation.box.reading():
        plan = situation.planner.build(tool, wish.constraints, check=True)
        if not plan.missing:
            score = (
                plan.score
                - len(plan.left)
                + 0.4 * situation.box.touch(wish.around, tool.nouns)
                - 0.07 * plan.query.calls()
            )
            plans.append((score + situation.chance("exists", tool.name), plan.query))
    return [query for _, query in sorted(plans, key=lambda pair: -pair[0])][:1]


def pair_in(
    situation: Situation, constraints: Sequence[Constraint], comparative: Extreme | None
) -> tuple[Mention, Mention] | None:
    """Two mentions that are compared with each other: side by side, and for the same place."""
    names = [one for one in constraints if isinstance(one, Mention) and one.kind in ("name", "value")]
    for first, second in pairwise(names):
        if (
            first.kind == second.kind
            and (len(names) == 2 or abs(first.at - second.at) <= 3)
            and _alike(situation, first, second)
        ):
            return first, second
    return None


def _alike(situation: Situation, first: Mention, second: Mention) -> bool:
    """Whether two mentions would go to the same place."""
    best = []
    for mention in (first, second):
        scored = [
            (score, tool.name, number)
            for tool in situation.box.reading()
            for number, parameter in enumerate(tool.parameters)
            if (score := situation.places.fit(replace(mention, context={}), parameter, tool)) is not None
        ]
        best.append(max(scored, default=None))
    return best[0] is not None and best[0] == best[1]


def combined(
    situation: Situation,
    goal: Goal,
    wish: Wish,
    pair: tuple[Mention, Mention],
    comparative: Extreme | None,
    clause: Clause | None,
) -> Thinking:
    """What a goal asks about two things: which one it is, how far they are apart, or their sum."""
    difference = "difference" in wish.own or ("difference" in wish.summaries and "sum" not in wish.own)
    if goal.numeric:
        words = goal.words
        if difference or comparative is None:
            first, second, _ = yield from _measures(situation, pair, wish.constraints, comparative, words, clause)
            if first is None or second is None:
                return None
            return abs(first - second) if difference else first + second
        return None
    if comparative is None:
        return None
    first, second, upward = yield from _measures(situation, pair, wish.constraints, comparative, {}, clause)
    if first is None or second is None:
        return None
    return str((pair[0] if (first > second) == upward else pair[1]).value)


def _measures(
    situation: Situation,
    pair: tuple[Mention, Mention],
    constraints: Sequence[Constraint],
    comparative: Extreme | None,
    words,
    clause: Clause | None,
) -> Generator[Step, Observation, Measures]:
    """What two things measure, in the same way."""
    options = []
    upward = comparative.more if comparative is not None else True
    rest = tuple(one for one in constraints if one not in pair and not isinstance(one, Extreme))
    known = words if words and any(situation.box.weight(word) and situation.box.near(word) for word in words) else {}
    contexts = [(known, None)] if known else []
    if comparative is not None:
        contexts += [
            ({word: 1.0}, degree.more)
            for degree in comparative.degrees
            for word in sorted(degree.of)
            if any(score >= 1.0 for _, score in situation.box.near(word))
        ]
        if comparative.context and not known:
            contexts.append((comparative.context, None))
    for context, more in contexts:
        wish = Wish(
            words=context,
            around=merge(residual(clause) if clause else {}, comparative.context if comparative else {}),
            head={},
            kind="number",
            numeric=True,
            constraints=(*rest, pair[0]),
            summaries=frozenset({"count"}),
            own=frozenset(),
        )
        found = readings(wish, situation.planner)
        if found:
            bonus = 0.0 if more is None else -0.1
            options.append((found[0].score + bonus, len(options), wish, more))
    if not options:
        return Measures(None, None, upward)
    _, _, wish, more = max(options, key=lambda option: (option[0], -option[1]))
    if more is not None and comparative is not None and comparative.degrees:
        upward = more
    values = []
    for one in pair:
        value = yield from first_value(situation, replace(wish, constraints=(*rest, one)))
        values.append(value if isinstance(value, int | float) else None)
    return Measures(values[0], values[1], upward)


def _degree_words(situation: Situation, compare: Compare):
    known = [
        word
        for degree in compare.degrees
        for word in sorted(degree.of)
        if any(score >= 0.8 for _, score in situation.box.near(word))
    ]
    return {word: 1.0 for word in known[:1]}
