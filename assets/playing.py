"""Attempts of a checkpoint at tasks, dealt out to the workers."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from agent_world.arena.evaluation import Mode, Sample, evaluate
from agent_world.engine import Engine
from agent_world.identity import VersionId
from agent_world.models.local import LocalPolicy
from agent_world.models.named import laid_down
from agent_world.sandbox import default_sandbox
from agent_world.world import BoundTask, World
from assets.settings import Settings

_FEW = 64
"""Up to so many attempts are played in this process: a worker that has to load PyTorch first takes longer."""


def samples_of(
    world: World, engine: Engine, settings: Settings, version: VersionId, tasks: Sequence[BoundTask], *, mode: Mode,
    samples: int,
) -> list[Sample]:  # fmt: skip
    """Attempts of the checkpoint at the tasks, greedy or at temperature 1, dealt out to the workers.

    Raises:
        RuntimeError: a worker could not play its share.
    """
    shares = engine.workers if len(tasks) * samples > _FEW else 1
    hands = [hand for start in range(shares) if (hand := tasks[start::shares])]
    with laid_down(world, version) as folder:
        dealt = [_Share(folder, version, hand, mode, samples, settings.seed) for hand in hands]
        played = list(engine.map(_play, dealt))
    for share in played:
        if share.failure:
            raise RuntimeError(f"{share.failure.error}\n{share.failure.trace}")
    by_task = {task: list(own) for share in played for task, own in groupby(share.result, lambda found: found.task)}
    return [sample for bound in tasks for sample in by_task[bound.version]]


class _Share(NamedTuple):
    """What one worker plays."""

    folder: Path
    version: VersionId
    tasks: Sequence[BoundTask]
    mode: Mode
    samples: int
    seed: int


def _play(share: _Share) -> list[Sample]:
    import torch

    torch.set_num_threads(1)  # each worker has a core; what is decoded is too small to be worth more
    policy = LocalPolicy.load(
        share.folder, version=share.version, temperature=0.0 if share.mode == "greedy" else 1.0
    )  # fmt: skip
    return evaluate(
        policy, share.tasks, mode=share.mode, samples=share.samples, seed=share.seed, sandbox=default_sandbox(),
        max_steps=20,
    )  # fmt: skip
