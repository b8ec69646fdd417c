"""Screening: which tasks can teach a policy by reward, as found by trying (notes in docs/training.md)."""

from collections import Counter
from typing import Any

import dagster as dg

from agent_world.engine import Engine
from agent_world.identity import VersionId
from agent_world.lake.batch import Batch
from agent_world.world import World
from assets.playing import samples_of
from assets.settings import Settings
from assets.stage import commit, derive
from assets.training import task_set

TRIES = 4
"""Attempts at each task: enough to leave out most of those that are always or never passed."""


def learnable(
    context: dg.AssetExecutionContext, world: World, engine: Engine, settings: Settings, *, policy: VersionId,
    name: str, round: int, tried: dict[str, Any], known: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The tasks of the set `tried` that the policy passes now and then, as a named set of their own.

    A group of rollouts that all pass or all fail has no advantage and moves nothing. Where no task is left, all are
    taken. Those of `known` join untried: an earlier policy of this line could learn from them.
    """
    label, tasks = f"learnable-{name}", tried["tasks"]
    sets = [tried, known] if known else [tried]

    def fill(batch: Batch) -> None:
        bound = [world.task(task) for task in tasks]
        attempts = samples_of(world, engine, settings, policy, bound, mode="sampled", samples=TRIES)
        passed = Counter(sample.task for sample in attempts if sample.status == "pass")
        failed = Counter(sample.task for sample in attempts if sample.status == "fail")
        found = [task for task in tasks if passed[task] and failed[task]]
        chosen = list(dict.fromkeys([*found, *(known["tasks"] if known else ())])) or tasks
        payload = {
            "name": label, "purpose": "training", "round": round, "tasks": chosen, "size": len(chosen),
            "passes": {task: passed[task] for task in tasks},
        }  # fmt: skip
        parents = [*((VersionId(each["version_id"]), "task_set") for each in sets), (policy, "policy")]
        batch.create("task_set", label, payload, parents=parents)

    derivation = derive(settings, [], [policy, *(each["version_id"] for each in sets)])
    commit(context, world, "screening", name, derivation, fill)
    return task_set(world, label)
