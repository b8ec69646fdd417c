"""What one episode of the solver knows: the instruction as it was read, what was done, and what was found out."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from agent_world.environments.model import Json
from agent_world.rollouts.model import Turn
from agent_world.solver.deeds import Deed
from agent_world.solver.denoting import Denoter
from agent_world.solver.discourse import Discourse
from agent_world.solver.goals import Goal, align, goals_of
from agent_world.solver.index import Toolbox, toolbox_of
from agent_world.solver.kinds import kinds_of
from agent_world.solver.mentions import tokenise
from agent_world.solver.model import Branch, Clause, Compare, Constraint, Extreme, Mention, Part, is_strong, mark_of
from agent_world.solver.places import KnownSlots, Places, is_yearly
from agent_world.solver.plan import Chance, Planner
from agent_world.solver.reading import flat, read
from agent_world.solver.run import Runner
from agent_world.solver.terms import Term


@dataclass(slots=True, kw_only=True)
class Situation:
    """One episode from the inside.

    `conditions` are the clauses that branches turn on; `aligned` are the clauses a goal may belong to, best first, with
    scores; `denoter` works out the noun phrases of `discourse`, `names` are what is named in so many words; `acted` are
    the deeds that a clause (by its position) told of; `checked` are constraints that a condition
    was held against.
    """

    box: Toolbox
    chance: Chance
    places: Places
    planner: Planner
    runner: Runner
    denoter: Denoter
    discourse: Discourse
    names: list[str]
    parts: tuple[Part, ...]
    clauses: list[Clause]
    conditions: list[Clause]
    goals: list[Goal]
    aligned: dict[str, list[tuple[Clause, float]]]
    answers: dict[str, Json] = field(default_factory=dict)
    deeds: list[Deed] = field(default_factory=list)
    acted: dict[int, list[Deed]] = field(default_factory=dict)
    checked: list[Constraint] = field(default_factory=list)

    @classmethod
    def at_start(cls, turn: Turn, noise: random.Random, temperature: float, budget: int) -> Situation:
        """The situation before the first step."""
        box = toolbox_of(turn.tools)
        known = _understood(box, turn.instruction, json.dumps(turn.answer_schema, default=dict))
        chance, places, runner = Chance(noise, temperature), Places(box, known.slots), Runner(box, budget)
        return cls(
            box=box,
            chance=chance,
            places=places,
            runner=runner,
            denoter=Denoter(box, runner),
            discourse=replace(known.discourse, acted=[]),
            names=known.names,
            parts=known.parts,
            clauses=known.clauses,
            goals=known.goals,
            planner=Planner(box, chance, runner.recall, places),
            aligned=dict(known.aligned),
            conditions=[one.condition for one in known.parts if isinstance(one, Branch) and one.condition is not None],
        )

    @property
    def done(self) -> list[Deed]:
        """The deeds that were not refused."""
        return [deed for deed in self.deeds if deed.result is not None]

    def record(self, deed: Deed) -> None:
        """Remembers a deed, and which clauses it answers."""
        self.deeds.append(deed)
        for position in self.told_by(deed):
            self.acted.setdefault(position, []).append(deed)

    def readings_of(self, term: Term) -> list[Term]:
        """What a term may stand for, the likeliest first: what it points back to may be anything an order named."""
        found = [
            self.discourse.with_name(one.text).resolved(term)
            for deed in reversed(self.done)
            for one in deed.constraints
            if isinstance(one, Mention) and one.kind == "name"
        ]
        return list(dict.fromkeys([*found, self.discourse.resolved(term)]))

    def fact_before(self, clause: Clause) -> Term:
        """The fact that a pronoun in a condition stands for: the last one that was asked for before it."""
        start = clause.tokens[0].start
        return next((term for at, term in reversed(self.discourse.facts) if at < start), self.discourse.facts[0][1])

    def skip(self, clauses: Sequence[Clause]) -> None:
        """Forgets clauses of a branch that was not taken: no question is about them, unless it is all that asks."""
        for name, aligned in self.aligned.items():
            rest = [pair for pair in aligned if pair[0].kind == "ask" or all(pair[0] is not one for one in clauses)]
            self.aligned[name] = rest or aligned

    def told_by(self, deed: Deed) -> list[int]:
        """The clauses that told of a deed: its own, and those that lent it all their names."""
        others = [
            one for one in self.clauses if one is not deed.clause and one.kind == "do" and one not in self.conditions
        ]
        lenders = [
            one for one in others if one.mentions and set(map(id, one.mentions)) <= set(map(id, deed.constraints))
        ]
        return [deed.clause.position, *(one.position for one in lenders)]

    def inherited(
        self, clause: Clause, without: Sequence[Constraint] = (), without_compare: bool = False
    ) -> tuple[Constraint, ...]:
        """The constraints of a clause and, when it only refers to something, those of the clauses it refers to.

        What a condition compares says nothing about a goal: `without_compare` leaves it out.
        """
        if clause.position in self.acted:
            return self.fed_constraints(clause)
        constraints = [one for one in clause.constraints if one not in without]
        if without_compare and clause in self.conditions:
            constraints = [
                one
                for one in constraints
                if isinstance(one, Mention) and one.kind != "value" and one not in self.checked
            ]
        before = [one for one in self.clauses if one.position < clause.position]
        while before and not any(is_strong(one) for one in constraints):
            previous = before.pop()
            if previous.position in self.acted:
                constraints += [one for one in self.fed_constraints(previous) if len(self.acted[previous.position]) > 1]
                break
            ranked = any(isinstance(one, Extreme) for one in constraints)
            if ranked and not any(one.context or one.degrees for one in constraints if isinstance(one, Extreme)):
                lent = [one for one in previous.constraints if isinstance(one, Extreme)]
                constraints = [
                    replace(one, context=lent[0].context, degrees=lent[0].degrees)
                    if isinstance(one, Extreme) and lent
                    else one
                    for one in constraints
                ]
            constraints += [
                one
                for one in previous.constraints
                if not (ranked and isinstance(one, Extreme)) and not any(replaces(other, one) for other in constraints)
            ]
        return tuple(constraints)

    def fed_constraints(self, clause: Clause) -> tuple[Constraint, ...]:
        """Of an order, the constraints that chose the rows it was about, when there were several."""
        deeds = [deed for deed in self.acted[clause.position] if deed.tool is self.acted[clause.position][0].tool]
        if len(deeds) < 2:
            return ()
        given = {str(value) for deed in deeds for value in deed.arguments.values()}
        return tuple(one for one in deeds[0].constraints if not isinstance(one, Mention) or str(one.value) not in given)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What an instruction and the answer it asks for say, before any call; the same for every episode."""

    parts: tuple[Part, ...]
    clauses: list[Clause]
    names: list[str]
    goals: list[Goal]
    aligned: dict[str, list[tuple[Clause, float]]]
    discourse: Discourse
    slots: KnownSlots = field(default_factory=dict)


@lru_cache(maxsize=8)
def _understood(box: Toolbox, instruction: str, schema: str) -> _Reading:
    parts = read(instruction, box)
    clauses = flat(parts)
    names = [one.text for clause in clauses for one in clause.mentions if one.kind == "name"]
    goals = goals_of(json.loads(schema), box, names)
    return _Reading(
        parts=parts,
        clauses=clauses,
        names=names,
        goals=goals,
        aligned=align(goals, clauses, box),
        discourse=Discourse.of(tokenise(instruction, box.doing, words=box.weights), kinds_of(box)),
    )


def replaces(one: Constraint, other: Constraint) -> bool:
    """Whether a comparison says something else about what another one is about: "and how many in 1963?"."""
    if not isinstance(one, Compare) or not isinstance(other, Compare) or mark_of(one) == mark_of(other):
        return False
    return is_yearly(one.value) and is_yearly(other.value)
