"""Screening: which tasks can teach a policy by reward, as found by trying (notes in docs/training.md)."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import dagster as dg

from agent_world.engine import Engine
from agent_world.identity import VersionId, rng
from agent_world.lake.batch import Batch
from agent_world.world import World
from assets.playing import samples_of
from assets.settings import Settings
from assets.stage import commit, derive
from assets.training import task_set

TRIES = 4
"""Attempts at each task: enough to leave out most of those that are always or never passed."""

_TRIED = 3
"""Tasks that are tried for each group of rollouts in the training: a good third of them can teach a policy."""


def learnable(
    context: dg.AssetExecutionContext, world: World, engine: Engine, settings: Settings, *, policy: VersionId,
    name: str, round: int, sets: Sequence[dict[str, Any]], groups: int,
) -> dict[str, Any]:  # fmt: skip
    """The tasks of the task sets `sets` that the policy passes now and then, as a named set of their own.

    A group of rollouts that all pass or all fail has no advantage and moves nothing. Where no task is left, all are
    taken. As many tasks are tried as a training on so many `groups` can use: those of the first set first, others by
    chance.
    """
    label = f"learnable-{name}"
    tasks = _drawn(sets, _TRIED * groups, rng("screening", settings.seed, name))

    def fill(batch: Batch) -> None:
        bound = [world.task(task) for task in tasks]
        attempts = samples_of(world, engine, settings, policy, bound, samples={"sampled": TRIES})
        passed = Counter(sample.task for sample in attempts if sample.status == "pass")
        failed = Counter(sample.task for sample in attempts if sample.status == "fail")
        chosen = [task for task in tasks if passed[task] and failed[task]] or tasks
        payload = {
            "name": label, "purpose": "training", "round": round, "tasks": chosen, "size": len(chosen),
            "passes": {task: passed[task] for task in tasks},
        }  # fmt: skip
        parents = [*((VersionId(each["version_id"]), "task_set") for each in sets), (policy, "policy")]
        batch.create("task_set", label, payload, parents=parents)

    derivation = derive(settings, [], [policy, str(groups), *(each["version_id"] for each in sets)])
    commit(context, world, "screening", name, derivation, fill)
    return task_set(world, label)


def _drawn(sets: Sequence[dict[str, Any]], count: int, source: random.Random) -> list[str]:
    """So many tasks at most, sorted."""
    tasks: dict[str, None] = {}
    for each in sets:
        tasks |= dict.fromkeys(source.sample(each["tasks"], len(each["tasks"])))
    return sorted(list(tasks)[:count])
