"""Settles the goals: which constraints hold for a field of the answer, and how its value is got."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from agent_world.rollouts.model import Observation, Step
from agent_world.solver.comparing import combined, pair_in, truth
from agent_world.solver.fields import merge
from agent_world.solver.finding import first_value
from agent_world.solver.goals import Goal, Wish, adds_up, is_flag, readings, residual
from agent_world.solver.lexicon import stem
from agent_world.solver.model import Clause, Constraint, Extreme, Mention, is_strong
from agent_world.solver.situation import Situation, replaces
from agent_world.solver.spoken import phrased

_TOLD = 0.45  # how well a yes-or-no field must fit before it is taken for the answer


def settle(situation: Situation, goal: Goal) -> Generator[Step, Observation, None]:
    """Finds the value of one field of the answer, once."""
    if goal.name in situation.answers:
        return
    situation.answers[goal.name] = yield from phrased(situation, goal)
    if situation.answers[goal.name] is not None:
        return
    wish, clause = _wish(situation, goal)
    comparative = (
        goal.phrase.comparative or (clause.comparative if clause else None) or _comparative_before(situation, clause)
    )
    pair = (
        pair_in(situation, wish.constraints, comparative)
        if (comparative is not None or "difference" in wish.own | wish.summaries or "sum" in wish.own | wish.summaries)
        else None
    )
    if goal.kind == "boolean" and clause is not None:
        asked = replace(wish, constraints=tuple(one for one in wish.constraints if not is_flag(one, situation.box)))
        flags = [one for one in readings(asked, situation.planner) if one.fit > _TOLD]
        if flags and flags[0].score > 0:
            situation.answers[goal.name] = yield from first_value(situation, asked, clause)
            return
        source = goal.phrase if goal.phrase.constraints else clause
        situation.answers[goal.name] = yield from truth(
            situation, replace(source, comparative=source.comparative or comparative), wish.constraints
        )
        return
    if pair is not None:
        value = yield from combined(situation, goal, wish, pair, comparative, clause)
        if value is not None:
            situation.answers[goal.name] = value
            return
    situation.answers[goal.name] = yield from first_value(situation, wish, clause, seen_before=True)


def _wish(situation: Situation, goal: Goal) -> tuple[Wish, Clause | None]:
    clauses = situation.aligned[goal.name]
    clause = clauses[0][0] if clauses else None
    phrase = goal.phrase
    compared = phrase.comparative is not None and clause is not None and clause.comparative is not None
    named = [one for one in phrase.constraints if is_strong(one)]
    whole = phrase.each and bool(phrase.summaries or any(isinstance(one, Extreme) for one in phrase.constraints))
    if clause is None or whole or (named and not (compared and len(named) < 2)):
        constraints = phrase.constraints
        done = {state for deed in situation.deeds if deed.result is not None for state in deed.tool.becomes}
        own = tuple(
            one
            for one in constraints
            if not (isinstance(one, Mention) and one.kind == "value" and stem(one.text) in done)
        )
        constraints = own if own or clause is None else situation.inherited(clause)
    else:
        base = situation.inherited(clause, _guesses(situation, goal, clause), True)
        if any(isinstance(one, Extreme) for one in phrase.constraints):
            base = tuple(one for one in base if not isinstance(one, Extreme))
        base = tuple(one for one in base if not any(replaces(other, one) for other in phrase.constraints))
        seen = {(type(one), getattr(one, "value", None)) for one in base if not isinstance(one, Extreme)}
        constraints = (
            *base,
            *(one for one in phrase.constraints if (type(one), getattr(one, "value", None)) not in seen),
        )
    constraints = (*constraints, *_referred(situation, phrase, constraints))
    around = residual(clause) if clause else {}
    ranked = any(isinstance(one, Extreme) for one in phrase.constraints)
    return Wish(
        words=goal.words,
        around=merge(around, {word: 0.6 for word in residual(phrase)}),
        head=clause.head if clause else {},
        kind=goal.kind,
        numeric=goal.numeric,
        constraints=constraints,
        flags=merge(phrase.content, {} if named else clause.content if clause else {}),
        negated=phrase.negated,
        ranked=ranked,
        added=adds_up(phrase.text) or bool(clause and adds_up(clause.text)),
        own=phrase.summaries,
        summaries=clause.summaries if clause and not ranked else frozenset(),
    ), clause


def _referred(situation: Situation, phrase: Clause, constraints: Sequence[Constraint]) -> list[Mention]:
    """What "that chapter" stands for: the last value that was called so."""
    if any(is_strong(one) for one in constraints):
        return []
    for at, token in enumerate(phrase.tokens[:-1]):
        noun = phrase.tokens[at + 1].stem
        if token.low not in ("that", "this", "same"):
            continue
        fact = next(
            (
                one
                for one in reversed(situation.runner.facts)
                if stem(one.name.lower()) == noun and isinstance(one.value, str) and not one.key
            ),
            None,
        )
        if fact is not None:
            return [Mention(kind="name", text=fact.value, value=fact.value, context={noun: 1.0}, at=at)]
    return []


def _guesses(situation: Situation, goal: Goal, clause: Clause) -> tuple[Constraint, ...]:
    """Values in a question that are guesses at the answer, not conditions ("is it a novel?")."""
    if goal.kind != "string" or clause.comparative is not None:
        return ()
    return tuple(
        one
        for one in clause.mentions
        if one.kind == "value"
        and any(
            one.value in parameter.enum and situation.box.touch(goal.words, parameter.names) > 0.75
            for tool in situation.box.tools
            for parameter in tool.parameters
        )
    )


def _comparative_before(situation: Situation, clause: Clause | None) -> Extreme | None:
    if clause is None or any(is_strong(one) for one in clause.constraints):
        return None
    earlier = [one for one in situation.clauses if one.position < clause.position and one.kind == "ask"]
    return earlier[-1].comparative if earlier else None
