"""Synthesis of candidates for one environment: both kinds, reading and writing, by guideline, without repetition."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from agent_world.environments.model import Environment
from agent_world.identity import rng, seed_of
from agent_world.tasks.catalogue import Catalogue
from agent_world.tasks.difficulty import Aim
from agent_world.tasks.exclusions import TaskExclusions, plan_key, text_key
from agent_world.tasks.graph_tasks import graph_task
from agent_world.tasks.model import Purpose, Task, TaskKind
from agent_world.tasks.program_tasks import program_task
from agent_world.tasks.programs.draft import Bench

if TYPE_CHECKING:
    from agent_world.arena.model import Guideline
    from agent_world.sandbox import Sandbox

MIX: Mapping[tuple[TaskKind, bool], float] = {
    ("graph", False): 0.3, ("graph", True): 0.3, ("program", False): 0.2, ("program", True): 0.2,
}  # fmt: skip
"""The share of each kind of task, reading and writing."""

_PREFERENCE = 6.0
_PATIENCE = 60

UNSERVED = 0.2
"""At most this share of the tasks for a guideline serve none of its fields."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a guideline asks of single tasks, and how it weighs tools. An empty guideline wishes nothing."""

    guideline: Guideline | None
    patterns: Mapping[str, str]

    @property
    def named(self) -> bool:
        """Whether the guideline names tools, edges or patterns: only then can a task serve none of its fields."""
        asked = self.guideline
        return asked is not None and bool(asked.tools or asked.edges or asked.patterns)

    def weigh(self, tool: str) -> float:
        """How much more a tool is wanted than others."""
        asked = self.guideline
        if asked is None:
            return 1.0
        ends = {name for edge in asked.edges for name in edge}
        wanted = tool in asked.tools or tool in ends or self.patterns.get(tool) in asked.patterns
        return _PREFERENCE if wanted else 1.0

    def bias(self, source: str | None, target: str) -> float:
        """How much more the step from `source` to `target` is wanted."""
        if self.guideline is not None and source is not None and (source, target) in self.guideline.edges:
            return _PREFERENCE * _PREFERENCE
        return self.weigh(target)

    def cells(self, kinds: Sequence[TaskKind], writers: bool) -> dict[tuple[TaskKind, bool], float]:
        """The shares of `MIX` that are possible and asked for, summing to 1."""
        asked = self.guideline
        shares = {
            (kind, writing): share
            for (kind, writing), share in MIX.items()
            if kind in kinds
            and (writers or not writing)
            and (asked is None or not asked.kinds or kind in asked.kinds)
            and (asked is None or asked.writes is None or writing == asked.writes)
        }
        total = sum(shares.values())
        return {cell: share / total for cell, share in shares.items()}

    def allow(self, task: Task) -> bool:
        """Whether the difficulty knobs lie within the bounds."""
        bounds = self.guideline.knobs if self.guideline is not None else {}
        return all(low <= getattr(task.knobs, name) <= high for name, (low, high) in bounds.items())

    def served(self, task: Task) -> dict[str, Any] | None:
        """The field of the guideline that `task` exercises, {} where it asks for nothing; None when there is none."""
        asked = self.guideline
        if asked is None:
            return {}
        named: dict[str, list[Any]] = {
            "edges": [list(edge) for edge in pairwise(task.shape) if edge in asked.edges],
            "tools": [tool for tool in asked.tools if tool in task.shape],
            "patterns": [name for name in asked.patterns if name in {self.patterns.get(tool) for tool in task.shape}],
        }
        for name, value in named.items():
            if value:
                return {"environment": asked.environment, "field": name, "value": value}
        if self.named:
            return None
        if asked.writes is not None:
            return {"environment": asked.environment, "field": "writes", "value": asked.writes}
        if asked.kinds:
            return {"environment": asked.environment, "field": "kinds", "value": task.kind}
        if asked.knobs:
            value = {name: getattr(task.knobs, name) for name in asked.knobs}
            return {"environment": asked.environment, "field": "knobs", "value": value}
        return {}


def synthesise(
    environment: Environment,
    *,
    count: int,
    seed: int,
    purpose: Purpose = "general",
    round: int = 0,
    guideline: Guideline | None = None,
    exclude: TaskExclusions | None = None,
    kinds: Sequence[TaskKind] = ("graph", "program"),
    aim: Aim | None = None,
    sandbox: Sandbox | None = None,
) -> list[Task]:
    """Up to `count` candidates, executed but not yet gated: fewer where the environment does not give more.

    No two share their text or their bound plan, nor does one with what `exclude` forbids; at most half have a plan
    shape that `exclude` knows. With a guideline every task records the field that it serves; at most a fifth serve
    none, and only where not enough do. `aim` keeps those whose predicted pass rate is asked for.
    """
    exclude = exclude or TaskExclusions()
    maker = _Maker(environment, guideline, sandbox)
    shares = maker.wishes.cells(kinds, maker.can_write)
    have, misses = dict.fromkeys(shares, 0), dict.fromkeys(shares, 0)
    kept: list[Task] = []
    spare: list[Task] = []
    seen: set[str] = set()
    known = attempt = 0
    while len(kept) < count and (open_cells := [cell for cell in shares if misses[cell] < _PATIENCE]):
        cell = max(open_cells, key=lambda cell: shares[cell] * count - have[cell])
        chance = rng("task", environment.version, seed, purpose, round, attempt)
        task = maker.make(cell, seed_of("episode", environment.version, seed, purpose, round, attempt), chance)
        attempt += 1
        misses[cell] += 1
        if task is None or exclude.forbid(task) or not seen.isdisjoint({text_key(task), plan_key(task)}):
            continue
        if not maker.wishes.allow(task) or (aim is not None and not aim.wants(task, chance)):
            continue
        repeated = exclude.know(task)
        if repeated and known >= count // 2:
            continue
        served = maker.wishes.served(task)
        task = replace(task, purpose=purpose, round=round, serves=served or {})
        seen |= {text_key(task), plan_key(task)}
        if served is None:
            spare.append(task)
            continue
        known += repeated
        misses[cell] = 0
        have[cell] += 1
        kept.append(task)
    room = min(count - len(kept), int(len(kept) * UNSERVED / (1 - UNSERVED)))
    return _balanced([*kept, *spare[:room]], exclude)


def _balanced(tasks: list[Task], exclude: TaskExclusions) -> list[Task]:
    """`tasks` without the last of those whose shape is known, where they outnumber the new ones."""
    fresh = sum(not exclude.know(task) for task in tasks)
    kept, known = [], 0
    for task in tasks:
        if exclude.know(task):
            known += 1
            if known > fresh:
                continue
        kept.append(task)
    return kept


class _Maker:
    """Makes one candidate at a time; what it reads of the environment is read once."""

    def __init__(self, environment: Environment, guideline: Guideline | None, sandbox: Sandbox | None) -> None:
        self.catalogue = Catalogue(environment)
        self.wishes = Wishes(guideline, {tool.name: tool.pattern for tool in environment.tools})
        self.bench = Bench(catalogue=self.catalogue, weigh=self.wishes.weigh, sandbox=sandbox)
        self.can_write = bool(self.catalogue.writers)

    def make(self, cell: tuple[TaskKind, bool], seed: int, chance: random.Random) -> Task | None:
        """A candidate of this kind; None when the draw led to none."""
        kind, writing = cell
        if kind == "program":
            return program_task(self.bench, seed=seed, rng=chance, writing=writing)
        return graph_task(
            self.catalogue, seed=seed, rng=chance, bias=self.wishes.bias, writing=writing, sandbox=self.bench.sandbox
        )
