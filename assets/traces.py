"""A sample of a checkpoint's held-out episodes, kept in the lake and shown in MLflow as traces."""

from collections.abc import Sequence
from typing import Any

from agent_world.arena.evaluation import Sample
from agent_world.identity import VersionId, artifact_id_of
from agent_world.lake.batch import Batch
from agent_world.rollouts.model import Step, Trajectory
from agent_world.world import World, save_trajectory
from assets.tracking import Tracker

SHOWN = 5
"""Episodes of each evaluated checkpoint."""


def keep_some(
    batch: Batch, samples: Sequence[Sample], *, policy: VersionId, task_set: VersionId, round: int
) -> list[VersionId]:
    """Save `SHOWN` of the episodes, of passed and of failed ones as far as there are any, spread over the tasks."""
    parents = [(policy, "policy"), (task_set, "task_set")]
    return [
        save_trajectory(batch, sample.trajectory, purpose="evaluation", round=round, parents=parents)
        for sample in _chosen(samples)
    ]


def show(world: World, log: Tracker, run: str, kept: Sequence[VersionId], *, point: str, policy: VersionId) -> None:
    """Send the policy's episodes to MLflow, each once, tagged with the versions in the lake that it is made of."""
    known = log.traced("lake/policy", policy, "lake/trajectory")
    for version in kept:
        if version in known:
            continue
        trajectory = world.trajectory(version)
        tags = {
            "point": point,
            "outcome": trajectory.outcome.status,
            "lake/trajectory": version,
            "lake/task": trajectory.task,
            "lake/environment": trajectory.environment,
            "lake/policy": policy,
        }
        log.trace(
            run,
            f"{point}: {artifact_id_of(trajectory.task)}",
            _spans(trajectory),
            tags,
            asked=world.task(trajectory.task).task.instruction,
            came_of_it={"status": trajectory.outcome.status, "failed": list(trajectory.outcome.failed)},
        )


def _chosen(samples: Sequence[Sample]) -> list[Sample]:
    passed, failed = ([sample for sample in samples if sample.status == status] for status in ("pass", "fail"))
    passes = min(len(passed), max(SHOWN // 2, SHOWN - len(failed)))
    return [*_spread(passed, passes), *_spread(failed, min(len(failed), SHOWN - passes))]


def _spread(samples: Sequence[Sample], count: int) -> list[Sample]:
    return [samples[place * len(samples) // count] for place in range(count)]


def _spans(trajectory: Trajectory) -> list[tuple[str, Any, Any]]:
    return [(step.tool or step.kind, _given(step), seen and seen.value) for step, seen in trajectory.steps]


def _given(step: Step) -> Any:
    return {"tool": dict(step.arguments), "answer": step.answer}.get(step.kind, step.text)
