"""One episode of the solver: reads the instruction, acts part by part, and answers.

A mind is a generator: it yields steps, is sent observations, and ends with the answer.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence

from agent_world.rollouts.model import Observation, Step, Turn
from agent_world.solver.answers import empty, fitted
from agent_world.solver.asking import settle
from agent_world.solver.clause import POLITE
from agent_world.solver.comparing import truth
from agent_world.solver.deeds import SURE, Deed, Order, is_complete, likely_order, orders
from agent_world.solver.doing import perform
from agent_world.solver.finding import Thinking
from agent_world.solver.model import Branch, Clause, Part
from agent_world.solver.run import SpentError
from agent_world.solver.situation import Situation
from agent_world.solver.spoken import Target, is_question, judged, targets

Acting = Generator[Step, Observation, None]

_TRIED = 3  # tools tried for one order
_MAYBE_ORDERS = frozenset("check give let add list sum count return find look see state report".split())
_QUESTIONS = frozenset("which what who how when where whether".split())


def live(turn: Turn, noise: random.Random, temperature: float, budget: int) -> Thinking:
    """The steps of an episode; it ends with the answer."""
    situation = Situation.at_start(turn, noise, temperature, budget)
    try:
        for number, part in enumerate(situation.parts):
            following = situation.parts[number + 1] if number + 1 < len(situation.parts) else None
            yield from _part(situation, part, following)
        for goal in situation.goals:
            yield from settle(situation, goal)
    except SpentError:
        pass  # the answer is made of what was found until now
    answer = {}
    for name, schema in turn.answer_schema.get("properties", {}).items():
        value = fitted(situation.answers.get(name), schema)
        answer[name] = empty(schema) if value is None else value
    return answer


def _part(situation: Situation, part: Part, following: Part | None) -> Acting:
    if isinstance(part, Clause):
        spare = isinstance(following, Branch) and following.condition is None
        yield from _clause(situation, part, spare=spare)
    elif part.condition is None:
        refused = situation.deeds[-1] if situation.deeds and situation.deeds[-1].result is None else None
        situation.skip(part.otherwise if refused else part.then)
        for clause in part.then if refused else part.otherwise:
            yield from _clause(situation, clause, instead=refused)
    else:
        holds = yield from judged(situation, part.condition)
        if holds is None:
            holds = yield from truth(situation, part.condition, situation.inherited(part.condition))
        chosen, others = (part.then, part.otherwise) if holds != part.negated else (part.otherwise, part.then)
        situation.skip(others)
        for clause in chosen:
            yield from _clause(situation, clause, instead=_pattern(situation, others), others=others)


def _pattern(situation: Situation, others: Sequence[Clause]) -> Deed | None:
    """The order of the other branch, for a branch that only says what differs ("otherwise only one")."""
    if not others or not situation.box.writing():
        return None
    order = orders(others[0], situation.planner, situation.deeds)[0]
    if order.verb < SURE:
        return None
    return Deed(tool=order.tool, arguments={}, result=None, clause=others[0], constraints=others[0].constraints)


def _clause(
    situation: Situation,
    clause: Clause,
    *,
    spare: bool = False,
    instead: Deed | None = None,
    others: Sequence[Clause] = (),
) -> Acting:
    """Does what a clause orders, if it orders anything.

    `spare` says that another way follows for when this one is refused; `instead` is an order that this clause varies.
    """
    if not situation.box.writing() or (clause.kind == "ask" and not _may_order(clause)):
        return
    if is_question(situation, clause):
        return
    found = orders(clause, situation.planner, situation.deeds)
    if instead is not None and found[0].verb < SURE:
        found.sort(key=lambda order: order.tool is not instead.tool)
    before, tried = len(situation.deeds), False
    for order in found[:_TRIED]:
        varied = instead is not None and order.tool is instead.tool
        if not (order.verb >= SURE or varied or _may_be_plain(situation, clause, order, spare, tried, before)):
            continue
        tried = True
        if len(situation.deeds) == before:
            yield from _settle_questions_before(situation, clause)
        satisfied = False
        for target in (yield from targets(situation, clause)):
            satisfied = (yield from _perform(situation, order, target, spare, instead, others)) or satisfied
        if satisfied or (varied and order.verb < SURE):
            return


def _perform(
    situation: Situation, order: Order, target: Target, spare: bool, instead: Deed | None, others: Sequence[Clause]
) -> Generator[Step, Observation, bool]:
    made = len(situation.done)
    satisfied = yield from perform(situation, order, target.clause, spare, instead, others)
    if target.thing is not None and len(situation.done) > made:
        situation.discourse.acted.append(target.thing)
    return satisfied


def _may_be_plain(situation: Situation, clause: Clause, order: Order, spare: bool, tried: bool, before: int) -> bool:
    """Whether a clause without a telling verb may order `order`: all it names has a place there.

    Only when nothing was done yet and no other clause orders something for sure, or when a surer tool led nowhere.
    """
    if clause.kind != "do" or not is_complete(order, spare or tried):
        return False
    if tried:
        return True
    rest = [one for one in situation.clauses if one is not clause and one.kind == "do"]
    return not before and all(likely_order(one, situation.planner).verb < SURE for one in rest)


def _may_order(clause: Clause) -> bool:
    """Whether a clause that seems to ask may order something ("Check it out for her")."""
    lows = [token.low for token in clause.tokens]
    while len(lows) > 1 and lows[0] in POLITE:
        lows = lows[1:]
    first = lows[:3]
    return bool(first) and first[0] in _MAYBE_ORDERS and "me" not in first and not _QUESTIONS & set(first)


def _settle_questions_before(situation: Situation, clause: Clause) -> Acting:
    """Answers what was asked before an order, as things were then."""
    for goal in situation.goals:
        clauses = situation.aligned[goal.name]
        first = clauses[0][0] if clauses else None
        if first and first.kind == "ask" and first.position < clause.position and first not in situation.conditions:
            yield from settle(situation, goal)
