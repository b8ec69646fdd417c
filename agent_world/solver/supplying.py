"""Finds what an order lacks in the clauses around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_world.environments.model import Json
from agent_world.solver.deeds import Deed
from agent_world.solver.fields import Parameter
from agent_world.solver.index import IndexedTool
from agent_world.solver.model import Clause, Constraint, Mention, is_strong
from agent_world.solver.plan import Plan
from agent_world.solver.situation import Situation


def filled(
    situation: Situation,
    tool: IndexedTool,
    plan: Plan,
    constraints: list[Constraint],
    clause: Clause,
    instead: Deed | None,
    others: Sequence[Clause],
) -> tuple[Plan, list[Constraint]]:
    """Looks for what is missing in the clauses around: the refused order, the other branch, what was said before."""
    earlier = [
        one for one in situation.clauses if one.position < clause.position and one.position not in situation.acted
    ]
    missing, fed, chosen = list(plan.missing), dict(plan.query.fed), list(constraints)
    if earlier and clause.refers:
        told = [one for one in earlier[-1].constraints if one not in chosen]
        if earlier[-1] in situation.conditions:
            told = [one for one in told if isinstance(one, Mention) and one.kind == "name"]
        for parameter in [one for one in plan.missing if told and one.role == "id"]:
            if any((situation.places.fit(one, parameter, tool) or 0.0) > 0.5 for one in told):
                continue  # told outright, see below
            found = situation.planner.feed(tool, parameter, told)
            if found is not None:
                fed[parameter.name] = found
                missing.remove(parameter)
                chosen += told
                break
    pool: list[Constraint] = [*(instead.constraints if instead else ())]
    for other in others:
        pool += other.constraints
    for other in sorted(
        situation.clauses, key=lambda one: (one.position > clause.position, abs(one.position - clause.position))
    ):
        if other is not clause:
            pool += other.constraints
    given = dict(plan.query.given)
    for parameter in list(missing):
        scored = []
        for rank, one in enumerate(pool):
            if one in chosen:
                continue
            score = situation.places.fit(one, parameter, tool)
            if score is None:
                score = max(
                    (
                        0.8 * situation.places.best(one, link.tool, 1)
                        for link in situation.box.links.get((tool.name, parameter.name), ())
                        if not link.tool.writes
                    ),
                    default=0.0,
                )
            if parameter.role == "number" and abs(score - 0.3) < 0.01 and rank < 2:
                score = 0.9  # a bare number in the clause before: "She needs three."
            if score > 0.3:
                scored.append((score - 0.04 * rank, -rank, one))
        if scored:
            one = max(scored, key=lambda entry: entry[:2])[2]
            found = situation.planner.feed(tool, parameter, [one])
            if situation.places.fit(one, parameter, tool) is not None:
                given[parameter.name] = situation.planner.value_for(parameter, one)
            elif found is not None:
                fed[parameter.name] = found
            else:
                continue
            chosen.append(one)
            missing.remove(parameter)
        elif parameter.role == "enum" and (value := _meant(situation, parameter, clause)) is not None:
            given[parameter.name] = value
            missing.remove(parameter)
        elif parameter.role == "number":
            given[parameter.name] = 1
            missing.remove(parameter)
    return replace(plan, missing=tuple(missing), query=replace(plan.query, given=given, fed=fed)), chosen


def _meant(situation: Situation, parameter: Parameter, clause: Clause) -> Json:
    """The allowed value whose meaning the clause, or one before it, speaks of."""
    for near in sorted(
        situation.clauses, key=lambda one: (one.position > clause.position, abs(one.position - clause.position))
    ):
        scored = [
            (
                max(
                    situation.box.match(parameter.meanings[str(value)], near.content),
                    0.6 * situation.box.touch(near.content, _telling(parameter, value)),
                ),
                -number,
                value,
            )
            for number, value in enumerate(parameter.enum)
        ]
        score, _, value = max(scored, key=lambda entry: entry[:2])
        if score > 0.4:
            return value
    return None


def _telling(parameter: Parameter, value: Json) -> dict[str, float]:
    """The words that only the meaning of one allowed value has."""
    others = {word for other, meaning in parameter.meanings.items() if other != str(value) for word in meaning}
    return {word: weight for word, weight in parameter.meanings[str(value)].items() if word not in others}


def exchanged(
    situation: Situation, tool: IndexedTool, constraints: list[Constraint], instead: Deed
) -> list[Constraint]:
    """The constraints of a refused order with what the new one names in their place."""
    fresh = {one.kind for one in constraints if isinstance(one, Mention)}
    if not fresh:
        return constraints
    best: tuple[float, int, list[Constraint]] | None = None
    for number, old in enumerate(instead.constraints):
        if not isinstance(old, Mention) or old.kind not in fresh:
            continue
        kept = [one for one in instead.constraints if one is not old and one not in constraints] + constraints
        plan = situation.planner.build(tool, kept)
        score = plan.score - 2 * len(plan.missing) - len([one for one in plan.left if is_strong(one)])
        if best is None or score > best[0]:
            best = score, number, kept
    return best[2] if best is not None else constraints
