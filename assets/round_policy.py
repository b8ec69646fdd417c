"""The training of a round: targeted demonstrations first, then GRPO on the targeted set; and its control."""

import dagster as dg

from agent_world.identity import VersionId, rng
from agent_world.lake.batch import Batch
from agent_world.world import World
from assets.checks import check_specs, prove_all
from assets.partitions import IN_ONE_RUN, round_number, rounds
from assets.policies import checkpoint
from assets.recipes import demonstration_hyper, grpo_hyper
from assets.resources import LakeResource, RunResource, TrackerResource
from assets.settings import Settings
from assets.stage import commit, derive, report
from assets.targeted import set_name
from assets.training import demonstrations, general_demonstrations, job_of, task_set, train

_REHEARSED = 3
"""Old demonstrations beside each targeted one."""


@dg.asset(
    group_name="training", kinds={"delta", "torch"}, deps=["targeted_tasks", "base_policy"], partitions_def=rounds,
    backfill_policy=IN_ONE_RUN, check_specs=check_specs("round_policy", "checkpoints"),
)  # fmt: skip
def round_policy(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, tracker: TrackerResource
) -> dg.MaterializeResult:
    """pi(r) from pi(r-1): rejection-sampled demonstrations of the diagnosed abilities, then GRPO on the targeted set.

    Old demonstrations are rehearsed beside the targeted ones, so that what is known stays. In profile `full` a control
    spends the same steps on untargeted tasks. A round without a weak environment trains on the general set.
    """
    world, settings = lake.open(), run.settings
    made = []
    for key in context.partition_keys:
        round = round_number(key)
        general = task_set(world, "training")
        aimed = _targeted(world, round) or general
        made += _continue(
            context, world, tracker, settings, round=round, name=f"pi{round}", tasks=aimed, general=general
        )
        if settings.control:
            drawn = _untargeted(context, world, settings, round, general, aimed["size"])
            made += _continue(
                context, world, tracker, settings, round=round, name=f"control{round}", tasks=drawn, general=general
            )
    return report(world, {"checkpoints": len(made)}, made, prove_all(world, "checkpoints"))


def _continue(
    context: dg.AssetExecutionContext, world: World, tracker: TrackerResource, settings: Settings, *, round: int,
    name: str, tasks: dict, general: dict,
) -> list[VersionId]:  # fmt: skip
    stem = name.rstrip("0123456789")
    base = checkpoint(world, f"{stem}{round - 1}" if round > 1 else "pi0")
    fresh = demonstrations(world, tasks["tasks"])
    known = general_demonstrations(world)
    rehearsed = tuple(rng("rehearsal", settings.seed, name).sample(known, min(len(known), _REHEARSED * len(fresh))))
    shown = job_of(
        world, settings, method="sft", base=base, tasks=_together(tasks, general),
        hyper=demonstration_hyper(settings), trajectories=tuple(dict.fromkeys((*fresh, *rehearsed))),
    )  # fmt: skip
    first = train(context, world, tracker, settings, name=f"{name}-demonstrations", round=round, job=shown, tasks=tasks)
    tried = job_of(
        world,
        settings,
        method="grpo",
        base=first,
        tasks=tasks,
        hyper=grpo_hyper(settings, steps=settings.round_grpo_steps, tasks=tasks["size"]),
    )
    return [first, train(context, world, tracker, settings, name=name, round=round, job=tried, tasks=tasks)]


def _targeted(world: World, round: int) -> dict | None:
    rows = world.read("task_sets", where={"name": set_name(round), "state": "created"})
    return rows[-1] if rows and rows[-1]["size"] else None


def _together(tasks: dict, general: dict) -> dict:
    return {**tasks, "tasks": sorted({*tasks["tasks"], *general["tasks"]})}


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
