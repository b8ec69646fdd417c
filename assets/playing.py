"""Attempts of a checkpoint at tasks, dealt out to the workers."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import NamedTuple

from agent_world.arena.evaluation import Mode, Sample, evaluate
from agent_world.engine import Engine, Failure
from agent_world.errors import AgentWorldError
from agent_world.identity import VersionId
from agent_world.models.local import LocalPolicy
from agent_world.models.named import laid_down
from agent_world.rollouts.model import Trajectory
from agent_world.sandbox import default_sandbox
from agent_world.tasks.gates import trajectory_gate
from agent_world.tasks.verdicts import GateVerdict
from agent_world.world import BoundTask, World
from assets.progress import Progress
from assets.recipes import MAX_CONTEXT, MAX_STEP, MAX_TURNS
from assets.settings import Settings
from assets.stage import UnfinishedStageError

_HAND = 128
"""Attempts that a worker is given at once, whatever the number of workers: who plays together is part of the result."""


def samples_of(
    world: World, engine: Engine, settings: Settings, version: VersionId, tasks: Sequence[BoundTask], *,
    samples: Mapping[Mode, int],
) -> list[Sample]:  # fmt: skip
    """Attempts of the checkpoint at the tasks, so many in each mode, dealt out to the workers all at once.

    In the order of `samples`, in each mode by task. At temperature 1 they are sampled, else greedy.

    Raises:
        UnplayedError: a worker could not play its share.
        UnfinishedStageError: the machine kept it from doing so.
    """
    label = f"{world.payload(version)['name']} {' and '.join(samples)}"
    played: dict[tuple[Mode, str], list[Sample]] = defaultdict(list)
    with (
        laid_down(world, version) as folder,
        closing(Progress(label, len(tasks) * sum(samples.values()))) as progress,
    ):
        dealt = [
            _Share(folder, version, hand, mode, count, settings.seed)
            for mode, count in samples.items()
            for hand in _hands(tasks, count)
        ]
        passed = 0
        for done in engine.map(_play, dealt):
            if done.failure:
                raise _unplayed(f"attempts of {label}", done.failure)
            for sample in done.result:
                played[sample.mode, sample.task].append(sample)
                passed += sample.status == "pass"
            progress.reach(progress.count + len(done.result), f"{passed} passed")
    return [sample for mode in samples for bound in tasks for sample in played[mode, bound.version]]


def _hands(tasks: Sequence[BoundTask], samples: int) -> list[Sequence[BoundTask]]:
    """The tasks in hands of about equal size, `_HAND` attempts at most; two at least, so that two workers share few."""
    count = max(ceil(len(tasks) * samples / _HAND), min(2, len(tasks)))
    return [tasks[start::count] for start in range(count)]


def replays_of(engine: Engine, tasks: Sequence[BoundTask], played: Sequence[Sample]) -> list[GateVerdict | None]:
    """The word of the gate `trajectory` on each sample, in order; None where the harness broke: it has no end to reach.

    `tasks` are those that were played, in order.

    Raises:
        UnplayedError, UnfinishedStageError: as in `samples_of`.
    """
    own = {task: [sample.trajectory for sample in samples] for task, samples in groupby(played, lambda s: s.task)}
    found: list[GateVerdict | None] = []
    for done in engine.map(_replay, [_Played(bound, own[bound.version]) for bound in tasks]):
        if done.failure:
            raise _unplayed("replays of attempts", done.failure)
        found += done.result
    return found


class UnplayedError(AgentWorldError):
    """What a worker could not play."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what, self.why = what, why

    def __str__(self) -> str:
        return f"{self.what} could not be played: {self.why}"


def _unplayed(what: str, failure: Failure) -> AgentWorldError:
    """The error for a share that a worker could not play, with its trace as a note."""
    if failure.passing:
        return UnfinishedStageError(what, {"a worker": failure.error})
    error = UnplayedError(what, failure.error)
    error.add_note(failure.trace)
    return error


class _Share(NamedTuple):
    """What one worker plays."""

    folder: Path
    version: VersionId
    tasks: Sequence[BoundTask]
    mode: Mode
    samples: int
    seed: int


class _Played(NamedTuple):
    """A task and all attempts at it."""

    bound: BoundTask
    trajectories: Sequence[Trajectory]


def _replay(own: _Played) -> list[GateVerdict | None]:
    task, environment, sandbox = own.bound.task, own.bound.environment, default_sandbox()
    return [
        trajectory_gate(each, task, environment, sandbox=sandbox) if each.outcome.status != "infra_error" else None
        for each in own.trajectories
    ]


def _play(share: _Share) -> list[Sample]:
    import torch

    policy = LocalPolicy.load(
        share.folder, version=share.version, temperature=0.0 if share.mode == "greedy" else 1.0, max_step=MAX_STEP,
        max_context=MAX_CONTEXT,
    )  # fmt: skip
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # each worker has a core; what is decoded is too small to be worth more
    try:
        return evaluate(
            policy, share.tasks, mode=share.mode, samples=share.samples, seed=share.seed, sandbox=default_sandbox(),
            max_steps=MAX_TURNS,
        )  # fmt: skip
    finally:
        torch.set_num_threads(threads)
