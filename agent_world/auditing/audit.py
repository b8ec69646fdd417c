"""Deals the accepted artifacts of a lake out to the workers and sums up what the gates say of them now.

Not here: `match`, and whether two themes are about the same. Both judge a corpus that the lake does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_world.arena.diagnosis import wilson
from agent_world.auditing.census import Census, Enrichment, Toolbox, take_census, toolboxes
from agent_world.auditing.judges import (
    CheckpointGate,
    Word,
    judge_by_solver,
    judge_checkpoint,
    judge_database,
    judge_enrichment,
    judge_practice,
    judge_task,
    judge_theme,
    judge_toolbox,
    judge_trajectory,
)
from agent_world.engine import Engine
from agent_world.identity import VersionId, rng
from agent_world.tasks.gates import SOLVER_RUNS

if TYPE_CHECKING:
    from agent_world.world import World

OnProgress = Callable[[str, int, int], None]
"""Hears of the part at work, how many artifacts of it are done, and of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One gate over the artifacts of one kind: how many were accepted, on how many it ran now, which broke it.

    `bound` says what the gates that run policies saw over all tasks together: of random runs the 95 % interval of the
    pass rate.
    """

    gate: str
    kind: str
    accepted: int
    audited: int
    broken: tuple[Word, ...]
    bound: str = ""

    def row(self) -> dict[str, Any]:
        """The finding for a table."""
        return {
            "gate": self.gate,
            "kind": self.kind,
            "accepted": self.accepted,
            "audited": self.audited,
            "broken": len(self.broken),
            "bound": self.bound,
            "examples": [f"{word.subject}: {word.reason}" for word in self.broken[:3]],
        }


class _Part(NamedTuple):
    """Artifacts that are judged in the same way."""

    name: str
    judge: Callable[[Any], list[Word]]
    items: Sequence[VersionId | Enrichment | Toolbox]


def audit_lake(
    world: World, *, engine: Engine, seed: int, checkpoint_gate: CheckpointGate, tasks: int | None = None,
    trajectories: int | None = None, solver: bool = True, on_progress: OnProgress = lambda part, done, count: None,
) -> list[Finding]:  # fmt: skip
    """Run every gate again on every accepted artifact; what cannot be audited counts as broken.

    Args:
        world: the lake.
        engine: the workers.
        seed: seed of the fresh runs and of the draws.
        checkpoint_gate: what judges the files of a checkpoint and its training.
        tasks: only so many tasks, drawn by `seed` from all that were kept.
        trajectories: only so many trajectories, drawn by `seed`.
        solver: whether to run the solver's gate too, on what is audited of the tasks that it accepted.
        on_progress: told after each artifact.
    """
    census = take_census(world)
    words: list[Word] = []
    for part in _parts(world, census, seed, checkpoint_gate, tasks, trajectories, solver):
        for number, done in enumerate(engine.map(part.judge, part.items), 1):
            words += done.result or []
            if done.failure:
                words.append(Word("audit", part.name, str(done.item), done.failure.error))
            on_progress(part.name, number, len(part.items))
    return list(_findings(words, _counts(census)))


def _parts(
    world: World, census: Census, seed: int, checkpoint_gate: CheckpointGate, tasks: int | None,
    trajectories: int | None, solver: bool,
) -> list[_Part]:  # fmt: skip
    uri = world.uri
    drawn = set(_drawn([*census.tasks, *census.practice], tasks, seed))
    accepted = [task for task in census.tasks if task in drawn]
    parts = [
        _Part("theme", partial(judge_theme, uri), census.themes),
        _Part("database", partial(judge_database, uri), census.databases),
        _Part("richer database", partial(judge_enrichment, uri), census.rounds),
        _Part("environment", partial(judge_toolbox, uri), toolboxes(world, census)),
        _Part("checkpoint", partial(judge_checkpoint, uri, checkpoint_gate), census.checkpoints),
        _Part("task", partial(judge_task, uri, seed), accepted),
        _Part("practice task", partial(judge_practice, uri, seed), [t for t in census.practice if t in drawn]),
        _Part("trajectory", partial(judge_trajectory, uri), _drawn(census.trajectories, trajectories, seed)),
    ]
    if solver:
        training = [task for task in accepted if task not in census.hard]
        parts.append(_Part("training task", partial(judge_by_solver, uri, seed), training))
    return parts


def _drawn(versions: Sequence[VersionId], most: int | None, seed: int) -> list[VersionId]:
    """At most `most` of the versions, in their order."""
    if most is None or most >= len(versions):
        return list(versions)
    kept = set(rng("audit", seed).sample(range(len(versions)), most))
    return [version for index, version in enumerate(versions) if index in kept]


def _counts(census: Census) -> dict[str, int]:
    return {
        "theme": len(census.themes),
        "database": len(census.databases),
        "richer database": len(census.rounds),
        "tool": len(census.tools),
        "environment": len(census.environments),
        "checkpoint": len(census.checkpoints),
        "task": len(census.tasks),
        "practice task": len(census.practice),
        "trajectory": len(census.trajectories),
        "training task": len(census.tasks) - len(census.hard),
    }


def _findings(words: Sequence[Word], accepted: Mapping[str, int]) -> Iterator[Finding]:
    """A finding for each gate and kind, in the order in which they were first heard of."""
    for gate, kind in dict.fromkeys((word.gate, word.kind) for word in words):
        own = [word for word in words if (word.gate, word.kind) == (gate, kind)]
        # One tool may stand in several environments: it counts once.
        broken = {word.subject: word for word in reversed(own) if word.reason is not None}
        yield Finding(
            gate=gate, kind=kind, accepted=accepted[kind], audited=len({word.subject for word in own}),
            broken=tuple(broken.values())[::-1], bound=_bound(gate, own),
        )  # fmt: skip


def _bound(gate: str, words: Sequence[Word]) -> str:
    if gate == "random":
        passes, runs = sum(word.passes for word in words), sum(word.runs for word in words)
        low, high = wilson(passes, runs)
        return f"{passes} of {runs} runs pass: [{low:.4f}, {high:.4f}]"
    if gate == "solver":
        return f"{sum(word.runs > SOLVER_RUNS for word in words)} needed more than {SOLVER_RUNS} runs"
    return ""
