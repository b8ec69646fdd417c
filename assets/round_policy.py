"""The training of a round: targeted demonstrations first, then GRPO on the targeted set; and its control."""

from collections.abc import Sequence
from math import ceil

import dagster as dg

from agent_world.engine import Engine
from agent_world.identity import VersionId, rng
from agent_world.lake.batch import Batch
from agent_world.tasks.model import Purpose
from agent_world.world import World
from assets.checks import check_specs, prove_all
from assets.environments import built
from assets.partitions import IN_ONE_RUN, round_number, rounds
from assets.policies import checkpoint
from assets.recipes import GRPO_TASKS, demonstration_hyper, grpo_hyper
from assets.resources import EngineResource, LakeResource, RunResource, TrackerResource
from assets.screening import learnable
from assets.settings import Settings
from assets.stage import commit, derive, report
from assets.targeted import set_name
from assets.tasks import order_for, produce_all
from assets.training import demonstrations, job_of, task_set, train

_REHEARSED = 3
"""So many demonstrations of before at most beside each new one."""


_CANDIDATES = 1.3
"""Candidates for each demonstration that is wanted."""


@dg.asset(
    group_name="training", kinds={"delta", "torch"}, deps=["targeted_tasks", "base_policy"], partitions_def=rounds,
    backfill_policy=IN_ONE_RUN, check_specs=check_specs("round_policy", "checkpoints", "task_sets"),
)  # fmt: skip
def round_policy(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, tracker: TrackerResource,
    engine: EngineResource,
) -> dg.MaterializeResult:  # fmt: skip
    """pi(r) from pi(r-1): rejection-sampled demonstrations of the diagnosed abilities, then GRPO on the targeted set.

    Old demonstrations are rehearsed beside the targeted ones, so that what is known stays. In profile `full` a control
    gets as many new demonstrations and the same steps, over all environments and without a guideline. A round without a
    weak environment trains on the general set.
    """
    world, settings = lake.open(), run.settings
    made = []
    for key in context.partition_keys:
        round = round_number(key)
        general = task_set(world, "training")
        aimed = _targeted(world, round) or general
        fresh = demonstrations(world, "practice", round=round)
        made += _continue(
            context, world, engine.engine, tracker, settings, round=round, name=f"pi{round}", tasks=aimed, fresh=fresh,
            purpose="practice",
        )  # fmt: skip
        if settings.control:
            drawn = _untargeted(context, world, settings, round, general, aimed["size"])
            others = _untargeted_demonstrations(context, world, engine.engine, settings, round, len(fresh))
            made += _continue(
                context, world, engine.engine, tracker, settings, round=round, name=f"control{round}", tasks=drawn,
                fresh=others, purpose="control",
            )  # fmt: skip
    return report(world, {"checkpoints": len(made)}, made, prove_all(world, "checkpoints", "task_sets"))


def _continue(
    context: dg.AssetExecutionContext, world: World, engine: Engine, tracker: TrackerResource, settings: Settings, *,
    round: int, name: str, tasks: dict, fresh: Sequence[VersionId], purpose: Purpose,
) -> list[VersionId]:  # fmt: skip
    stem = name.rstrip("0123456789")
    base = checkpoint(world, f"{stem}{round - 1}" if round > 1 else "pi0")
    known = [
        *demonstrations(world, "practice"),
        *(version for before in range(1, round) for version in demonstrations(world, purpose, round=before)),
    ]
    few = min(len(known), _REHEARSED * len(fresh)) if fresh else len(known)
    rehearsed = rng("rehearsal", settings.seed, name).sample(known, few)
    shown = job_of(
        world, settings, method="sft", base=base, tasks=tasks, hyper=demonstration_hyper(settings),
        trajectories=(*fresh, *rehearsed),
    )  # fmt: skip
    first = train(context, world, tracker, settings, name=f"{name}-demonstrations", round=round, job=shown, tasks=tasks)
    chosen = learnable(
        context, world, engine, settings, policy=first, name=name, round=round, tasks=tasks, fewest=GRPO_TASKS
    )
    tried = job_of(
        world, settings, method="grpo", base=first, tasks=chosen,
        hyper=grpo_hyper(settings, steps=settings.round_grpo_steps, tasks=chosen["size"]),
    )  # fmt: skip
    return [first, train(context, world, tracker, settings, name=name, round=round, job=tried, tasks=chosen)]


def _targeted(world: World, round: int) -> dict | None:
    rows = world.read("task_sets", where={"name": set_name(round), "state": "created"})
    return rows[-1] if rows and rows[-1]["size"] else None


def _untargeted(
    context: dg.AssetExecutionContext, world: World, settings: Settings, round: int, general: dict, size: int
) -> dict:
    """As many tasks of the general set as the targeted set has: what the same budget buys without a diagnosis."""
    name = f"untargeted-r{round:02d}"
    drawn = sorted(rng("control", settings.seed, round).sample(general["tasks"], min(size, general["size"])))
    payload = {"name": name, "purpose": "training", "round": round, "tasks": drawn, "size": len(drawn)}

    def fill(batch: Batch) -> None:
        batch.create("task_set", name, payload, parents=[(VersionId(general["version_id"]), "task_set")])

    commit(world, f"task_set/{name}", "", derive(settings, [], drawn), context.run_id, fill)
    return task_set(world, name)


def _untargeted_demonstrations(
    context: dg.AssetExecutionContext, world: World, engine: Engine, settings: Settings, round: int, wanted: int
) -> tuple[VersionId, ...]:
    """So many new demonstrations at most, over all environments alike."""
    keys = sorted(built(world, through=round))
    orders = [
        order_for(world, settings, key, count=ceil(_CANDIDATES * wanted / len(keys)), purpose="control", round=round)
        for key in keys
    ]
    produce_all(context, world, engine, settings, f"control/r{round:02d}", orders)
    found = demonstrations(world, "control", round=round)
    return tuple(rng("control", settings.seed, round).sample(found, min(wanted, len(found))))
