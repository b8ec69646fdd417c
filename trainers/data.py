"""What a job trains on, read from the lake by the versions that the job pins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from agent_world.environments.model import Json
from agent_world.errors import BadInputError
from agent_world.identity import VersionId
from agent_world.models.named import lay_down
from agent_world.rollouts.model import Trajectory, Turn
from agent_world.world import BoundTask
from trainers.demonstration import Demonstration
from trainers.job import TrainJob


class Source(Protocol):
    """Where versions are looked up: a `World`, or something in memory."""

    def task(self, ref: str) -> BoundTask:
        """A task with its environment."""
        ...

    def trajectory(self, version: VersionId) -> Trajectory:
        """A recorded episode."""
        ...

    def payload(self, version: VersionId) -> Mapping[str, Json]:
        """The payload of a task set."""
        ...

    def files(self, version: VersionId) -> Mapping[str, bytes]:
        """The files of a checkpoint, by path."""
        ...


def tasks_of(job: TrainJob, source: Source) -> list[BoundTask]:
    """The tasks of the job's task set, in order.

    Raises:
        BadInputError: no task set, or a task over an environment that the job does not pin.
    """
    if job.task_set is None:
        raise BadInputError("the training job", "it names no task set", "GRPO needs one")
    tasks = [source.task(version) for version in source.payload(job.task_set)["tasks"]]
    for bound in tasks:
        _check_pinned(job, bound)
    return tasks


def demonstrations_of(job: TrainJob, source: Source) -> list[Demonstration]:
    """The job's trajectories, as what to imitate.

    Raises:
        BadInputError: no trajectory, one that did not pass, or one over an environment that the job does not pin.
    """
    if not job.trajectories:
        raise BadInputError("the training job", "it names no trajectories", "fine-tuning needs some that passed")
    tasks: dict[VersionId, BoundTask] = {}
    demonstrations = []
    for version in job.trajectories:
        trajectory = source.trajectory(version)
        if trajectory.outcome.status != "pass":
            why = f"its outcome is {trajectory.outcome.status}"
            raise BadInputError(f"trajectory {version}", why, "name only trajectories that passed")
        if trajectory.task not in tasks:
            tasks[trajectory.task] = source.task(trajectory.task)
            _check_pinned(job, tasks[trajectory.task])
        demonstrations.append(Demonstration(first_turn(tasks[trajectory.task]), trajectory.steps))
    return demonstrations


def first_turn(bound: BoundTask) -> Turn:
    """What a policy gets before its first step of this task."""
    return Turn(
        episode=bound.task.task_id,
        environment=bound.environment.environment_id,
        instruction=bound.task.instruction,
        tools=tuple(tool.public() for tool in bound.environment.tools),
        answer_schema=bound.task.answer_schema,
        history=(),
        seed=0,
    )


def lay_down_base(job: TrainJob, source: Source, directory: Path) -> Path:
    """Write the files of the job's base checkpoint below `directory`; returns it.

    Raises:
        BadInputError: the job names no base checkpoint.
    """
    if job.base is None:
        raise BadInputError("the training job", "it names no base checkpoint", "only `init` starts from none")
    lay_down(source.files(job.base), directory)
    return directory


def _check_pinned(job: TrainJob, bound: BoundTask) -> None:
    if bound.environment.version not in job.environments:
        why = f"it runs in {bound.environment.version}, which the training job does not pin"
        raise BadInputError(f"task {bound.version}", why, "pin every environment of the data")
