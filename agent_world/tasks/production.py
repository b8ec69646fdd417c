"""From an order to accepted tasks: synthesise candidates, run every gate, until enough are kept or the budget ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from agent_world.arena.model import Guideline
from agent_world.environments.model import Environment
from agent_world.identity import VersionId, seed_of
from agent_world.tasks.additions import guideline_for, over_additions, uses
from agent_world.tasks.exclusions import TaskExclusions
from agent_world.tasks.gates import SolverFactory, gate_task, practise
from agent_world.tasks.model import Purpose, Task
from agent_world.tasks.synthesis import UNSERVED, Wishes, synthesise
from agent_world.tasks.verdicts import TaskVerdict

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox

_SURPLUS = 1.6
_TRIES_AN_ADDITION = 4
_CANDIDATES_A_TASK = 6
_EMPTY_BATCHES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """`count` tasks of tier `train` for one environment. `exclude` are tasks that no new one may repeat.

    `diagnosis` is the version that the `guideline` stands in.

    For the purposes `practice` and `control`: `count` candidates, of which those stay that a solver can demonstrate.
    """

    environment: Environment
    count: int
    seed: int
    purpose: Purpose = "general"
    round: int = 0
    guideline: Guideline | None = None
    diagnosis: VersionId | None = None
    exclude: tuple[Task, ...] = field(default=(), repr=False)

    @property
    def enriching(self) -> bool:
        """Whether the guideline asks for a richer database, and so for tasks over what was added."""
        return self.guideline is not None and self.guideline.enrich


class Judged(NamedTuple):
    """A candidate and what the gates said of it."""

    task: Task
    verdict: TaskVerdict


def produce(order: Order, *, solver: SolverFactory, sandbox: Sandbox | None = None) -> list[Judged]:
    """Candidates with their verdicts, in the order made; the kept ones hold at most `order.count` of tier `train`.

    Of these at least half have a new plan shape where the order asks for that, and at most a fifth serve none of the
    fields that a guideline names: a candidate that would break a share is not judged. Begins with tasks over what
    complexification added and no task uses yet. Gives up after six candidates for each task ordered, or after three
    batches in a row that bring nothing new.
    """
    judged: list[Judged] = []
    kept: list[Task] = []
    known, named = _exclusions(order, ()), Wishes(order.guideline, {}).named
    empty, batch = 0, 0
    while len(kept) < order.count and len(judged) < order.count * _CANDIDATES_A_TASK and empty < _EMPTY_BATCHES:
        before = len(kept)
        for task in _candidates(order, judged, batch, sandbox):
            if len(kept) >= order.count:
                break
            if not _within_shares([*kept, task], known, named):
                continue
            verdict = gate_task(task, order.environment, sandbox=sandbox, solver=solver, seed=order.seed)
            judged.append(Judged(task, verdict))
            if verdict.tier == "train":
                kept.append(task)
        empty = 0 if len(kept) > before else empty + 1
        batch += 1
    return judged


def _within_shares(tasks: Sequence[Task], known: TaskExclusions, named: bool) -> bool:
    """Whether at most half of `tasks` have a known plan shape and, where a guideline names something, enough serve it.

    It holds of what is kept at every step, so that it also holds where an order gives up early.
    """
    repeated = sum(known.know(task) for task in tasks)
    unserved = sum(not task.serves for task in tasks) if named else 0
    return repeated <= len(tasks) / 2 and unserved <= len(tasks) * UNSERVED


def _candidates(order: Order, judged: Sequence[Judged], batch: int, sandbox: Sandbox | None) -> Iterator[Task]:
    """The candidates of one batch, in the light of what was judged before each is asked for."""
    if batch == 0 and (order.enriching or order.purpose == "general"):
        yield from _over_additions(order, judged, sandbox)
    left = order.count - sum(item.verdict.tier == "train" for item in judged)
    yield from synthesise(
        order.environment,
        count=max(4, int(left * _SURPLUS)),
        seed=seed_of("produce", order.seed, order.purpose, order.round, batch),
        purpose=order.purpose,
        round=order.round,
        guideline=order.guideline,
        exclude=_exclusions(order, judged),
        sandbox=sandbox,
    )


def _over_additions(order: Order, judged: Sequence[Judged], sandbox: Sandbox | None) -> Iterator[Task]:
    """A few candidates over each addition of complexification, until a task that is kept uses it.

    They serve no guideline but one that asked for the additions.
    """
    for name, tools in over_additions(order.environment).items():
        for number in range(_TRIES_AN_ADDITION):
            kept = [item.task for item in judged if item.verdict.accepted]
            found = [] if uses([*order.exclude, *kept], tools) else synthesise(
                order.environment,
                count=1,
                seed=seed_of("additions", order.seed, order.purpose, order.round, name, number),
                purpose=order.purpose,
                round=order.round,
                guideline=guideline_for(order.environment, tools),
                exclude=_exclusions(order, judged),
                sandbox=sandbox,
            )  # fmt: skip
            if not found:
                break
            serves = {"environment": order.environment.environment_id, "field": "enrich", "value": name}
            yield replace(found[0], serves=serves if order.enriching else {})


def practice(order: Order, *, solver: SolverFactory, sandbox: Sandbox | None = None) -> list[Judged]:
    """The candidates of an order for practice, each with its verdict."""
    candidates = synthesise(
        order.environment,
        count=order.count,
        seed=seed_of("practice", order.seed),
        purpose=order.purpose,
        round=order.round,
        guideline=order.guideline,
        exclude=_exclusions(order, ()),
        sandbox=sandbox,
    )
    return [
        Judged(task, practise(task, order.environment, sandbox=sandbox, solver=solver, seed=order.seed))
        for task in candidates
    ]


def _exclusions(order: Order, judged: Sequence[Judged]) -> TaskExclusions:
    """What no candidate may repeat. Only the arena also asks for plan shapes that were never trained on."""
    before = TaskExclusions.of(order.exclude)
    here = TaskExclusions.of(item.task for item in judged)
    return TaskExclusions(
        texts=before.texts | here.texts,
        plans=before.plans | here.plans,
        shapes=before.shapes if order.purpose == "arena" else frozenset(),
    )


def make(order: Order) -> list[Judged]:
    """`produce` or `practice` with the product's solver, in this process's sandbox: what is mapped over workers."""
    from agent_world.sandbox import default_sandbox
    from agent_world.solver import Solver

    fill = practice if order.purpose in ("practice", "control") else produce
    return fill(order, solver=Solver, sandbox=default_sandbox())
