"""Carries an order out: one call, one for each of several things, what must come first, and what follows from it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step
from agent_world.solver.deeds import SURE, Deed, Order
from agent_world.solver.finding import TRIES
from agent_world.solver.index import IndexedTool
from agent_world.solver.lexicon import split_words, stem
from agent_world.solver.model import Clause, Constraint, Extreme, Mention, is_strong
from agent_world.solver.plan import Plan
from agent_world.solver.run import SetbackError
from agent_world.solver.situation import Situation
from agent_world.solver.supplying import exchanged, filled

Acting = Generator[Step, Observation, bool]

_FAR = 0.7  # how much worse another way may be than the first one


def perform(
    situation: Situation, order: Order, clause: Clause, spare: bool, instead: Deed | None, others: Sequence[Clause]
) -> Acting:
    """Does what `clause` orders by the tool of `order`; whether that is settled now.

    It is when the environment accepted it, when it was done before, or when it was refused and `spare` says that
    another way follows.
    """
    constraints, tool = list(clause.constraints), order.tool
    if instead is not None and instead.tool is tool and order.verb < SURE:
        constraints = exchanged(situation, tool, constraints, instead)
    together = [one for one in constraints if isinstance(one, Mention) and one.group is not None]
    constraints = [one for one in constraints if one not in together[1:]]
    first = None
    for attempt in range(TRIES):
        plan = situation.planner.build(tool, constraints)
        first = plan.score if first is None else first
        if not plan.missing and plan.score < first - _FAR:
            return False  # what is left is far from what was said
        if plan.missing and attempt == 0 and (yield from _each_of_them(situation, tool, clause)):
            return True
        if plan.missing:
            plan, constraints = filled(situation, tool, plan, constraints, clause, instead, others)
        if plan.missing and attempt == 0 and (yield from _create_for(situation, plan, clause)):
            continue
        if plan.missing:
            return False
        try:
            made = yield from _execute(situation, plan, clause, constraints)
        except SetbackError as setback:
            fresh = set(setback.blame) - situation.places.banned
            if not fresh:
                return False
            situation.places.ban(fresh)
            continue
        refused = bool(made) and made[-1].result is None
        if refused and not spare and (yield from _unblock(situation, made[-1], clause)):
            continue
        yield from _repeat(situation, plan, constraints, together, clause)
        return (not made and not plan.left) or (spare and bool(made)) or any(deed.result is not None for deed in made)
    return False


def _execute(
    situation: Situation, plan: Plan, clause: Clause, constraints: Sequence[Constraint]
) -> Generator[Step, Observation, list[Deed]]:
    """Makes the call, or one for every row when the order is about each of them; a call made before is left out."""
    tool, query = plan.query.tool, plan.query
    combinations = yield from situation.runner.arguments(query)
    if len(combinations) > 1 and not clause.each and not _plural(clause, constraints):
        combinations = combinations[:1]
    made = []
    for arguments in combinations:
        if any(deed.tool is tool and deed.arguments == arguments for deed in situation.done):
            continue
        observation = yield from situation.runner.call(tool, arguments)
        accepted = observation.status == "ok" and isinstance(observation.value, Mapping)
        error = observation.value.get("error", {}) if isinstance(observation.value, Mapping) else {}
        deed = Deed(
            tool=tool,
            arguments=arguments,
            clause=clause,
            constraints=tuple(constraints),
            result=observation.value if accepted else None,
            refusal=str(error.get("message", "")),
        )
        situation.record(deed)
        made.append(deed)
        if deed.result is not None:
            for name, value in arguments.items():
                led = query.origins.get(name, frozenset()) if len(combinations) == 1 else frozenset()
                situation.runner.note(tool, {name: value}, led)
            fresh = {name: value for name, value in deed.result.items() if arguments.get(name) != value}
            situation.runner.note(tool, fresh, query.marks)
    return made


def _attempt(situation: Situation, plan: Plan, clause: Clause, constraints: Sequence[Constraint]) -> Acting:
    """Makes a call that is not the order itself; whether it was accepted."""
    try:
        made = yield from _execute(situation, plan, clause, constraints)
    except SetbackError as setback:
        situation.places.ban(set(setback.blame))
        return False
    return bool(made) and made[-1].result is not None


def _each_of_them(situation: Situation, tool: IndexedTool, clause: Clause) -> Acting:
    """The order for each of several things named before ("two of A and one of B ... put them in")."""
    if not any(token.low in ("them", "these", "those", "both") for token in clause.tokens):
        return False
    earlier = [
        one
        for one in situation.clauses
        if one.position < clause.position and sum(1 for mention in one.mentions if mention.kind == "name") > 1
    ]
    if not earlier:
        return False
    done = False
    mentions = earlier[-1].mentions
    for name in [one for one in mentions if one.kind == "name"]:
        plan = _with_number(situation.planner.build(tool, [name]), _number_before(name, mentions))
        if name not in plan.left and not plan.missing:
            done = (yield from _attempt(situation, plan, clause, [name])) or done
    return done


def _create_for(situation: Situation, plan: Plan, clause: Clause) -> Acting:
    """Makes first what the order needs an id of, when some tool creates it."""
    for parameter in plan.missing:
        for link in situation.box.links.get((plan.query.tool.name, parameter.name), ()):
            if not link.tool.writes or any(deed.tool is link.tool for deed in situation.deeds):
                continue
            inner = situation.planner.build(link.tool, clause.constraints)
            constraints = list(clause.constraints)
            if inner.missing:
                inner, constraints = filled(situation, link.tool, inner, constraints, clause, None, ())
            if not inner.missing:
                return (yield from _attempt(situation, inner, clause, constraints))
    return False


def _unblock(situation: Situation, deed: Deed, clause: Clause) -> Acting:
    """After a refusal: does first what its message asks for, when a tool does that to the same thing."""
    words = {stem(word) for word in split_words(deed.refusal)}
    for tool in situation.box.writing():
        if tool is deed.tool or any(one.tool is tool for one in situation.deeds):
            continue
        verb = max(
            (
                situation.box.closest(word, {known: weight for known, weight in tool.verb.items() if weight == 1.0})
                for word in words
            ),
            default=0.0,
        )
        plan = situation.planner.build(tool, ())
        if verb >= 0.95 and not plan.missing:
            return (yield from _attempt(situation, plan, clause, ()))
    return False


def _repeat(
    situation: Situation, plan: Plan, constraints: Sequence[Constraint], together: Sequence[Mention], clause: Clause
) -> Generator[Step, Observation, None]:
    """The same order for further names in the same breath ("A and B"), or what is to be done with them next.

    A list that was begun "with A and B" gets them by the tool that adds to it.
    """
    names = [one for one in plan.left if is_strong(one) and one not in together[1:]]
    if together and together[0] not in plan.left:
        for extra in together[1:]:
            again = situation.planner.build(
                plan.query.tool, [extra if one is together[0] else one for one in constraints]
            )
            if not again.missing:
                yield from _attempt(situation, again, clause, constraints)
    else:
        names += [one for one in together[1:] if one not in names]
    for extra in sorted(names, key=lambda one: one.at):
        following = _following(situation, plan.query.tool, extra, _number_before(extra, clause.mentions))
        if following is not None:
            yield from _attempt(situation, following, clause, [extra])


def _following(situation: Situation, tool: IndexedTool, extra: Mention, number: Json) -> Plan | None:
    """The order that takes a left-over name to what was just made."""
    best: tuple[float, Plan] | None = None
    for other in situation.box.writing():
        uses = any(
            (link.tool is tool)
            for one in other.required
            for link in situation.box.links.get((other.name, one.name), ())
        )
        if other is tool or not uses:
            continue
        plan = _with_number(situation.planner.build(other, [extra]), number)
        score = plan.score + max(situation.box.closest(stem(word), other.verb) for word in ("add", "put", "include"))
        if not plan.missing and extra not in plan.left and (best is None or score > best[0]):
            best = score, plan
    return best[1] if best is not None and best[0] > 1.2 else None


def _number_before(name: Mention, mentions: Sequence[Mention]) -> Json:
    """The number said shortly before a name ("two copies of A"), or 1."""
    numbers = [one for one in mentions if one.kind == "number" and 0 < name.at - one.at <= 4]
    return numbers[-1].value if numbers else 1


def _with_number(plan: Plan, number: Json) -> Plan:
    """The plan with `number` for what is still missing and takes one."""
    numbers = {one.name: number for one in plan.missing if one.role == "number"}
    missing = tuple(one for one in plan.missing if one.name not in numbers)
    return replace(plan, missing=missing, query=replace(plan.query, given={**plan.query.given, **numbers}))


def _plural(clause: Clause, constraints: Sequence[Constraint]) -> bool:
    """Whether an order is about several things: a superlative with a number, or "both"."""
    return any(isinstance(one, Extreme) and one.count > 1 for one in constraints) or any(
        token.low == "both" for token in clause.tokens
    )
