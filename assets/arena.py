"""The arena of a round: fresh tasks over environments of every category, attempted by the policy before it."""

import dagster as dg

from agent_world.arena.sampling import sample_environments
from agent_world.engine import Engine
from agent_world.identity import VersionId
from agent_world.lake.batch import Batch
from agent_world.world import World, save_trajectory
from assets.checks import check_specs, prove_all
from assets.environments import built
from assets.partitions import IN_ONE_RUN, round_key, round_number, rounds
from assets.playing import replays_of, samples_of
from assets.resources import EngineResource, LakeResource, RunResource
from assets.settings import Settings
from assets.stage import commit, derive, report
from assets.tasks import order_for, produce_all, save_set
from assets.training import checkpoint
from assets.verdicts import gated


def categories(world: World, round: int) -> dict[str, str]:
    """Environment key to first-level category, as the arena of a round finds them."""
    return {key: row["category"] for key, row in built(world, through=round - 1).items()}


def set_name(round: int) -> str:
    """The name of the arena's task set of a round."""
    return f"arena-{round_key(round)}"


@dg.asset(
    group_name="arena", kinds={"delta"}, deps=["taxonomy", "base_policy"], partitions_def=rounds,
    backfill_policy=IN_ONE_RUN,
    check_specs=check_specs("arena", "tasks", "gate_verdicts", "task_sets", "trajectories"),
)  # fmt: skip
def arena(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, engine: EngineResource
) -> dg.MaterializeResult:
    """Fresh tasks of both kinds, unlike any training task, and the policy's attempts at them with full traces."""
    world, settings = lake.open(), run.settings
    made, counts, kept = [], {}, {}
    for key in context.partition_keys:
        round = round_number(key)
        drawn = sample_environments(
            categories(world, round), per_category=settings.arena_environments, seed=settings.seed, round=round
        )
        orders = [
            order_for(world, settings, name, count=settings.arena, purpose="arena", round=round) for name in drawn
        ]
        produce_all(context, world, engine.engine, settings, f"arena/{key}", orders)
        tasks = save_set(context, world, settings, set_name(round), purpose="arena", round=round)
        size, wanted = world.payload(tasks)["size"], len(drawn) * settings.arena
        if size < wanted:
            context.log.warning(f"arena {key}: {size} tasks of {wanted}; no more came through the gates and were new")
        made += attempt(context, world, engine.engine, settings, round, tasks)
        counts[key], kept[key] = len(drawn), f"{size} of {wanted}"
    proofs = prove_all(world, "tasks", "gate_verdicts", "task_sets", "trajectories")
    return report(world, {"environments": counts, "tasks": kept, "attempts": len(made)}, made, proofs)


def attempt(
    context: dg.AssetExecutionContext, world: World, engine: Engine, settings: Settings, round: int, tasks: VersionId
) -> tuple[VersionId, ...]:
    """Attempts of the round's policy at the round's tasks: each a trajectory, with its reward and its replay."""
    version = checkpoint(world, f"pi{round - 1}")
    derivation = derive(settings, ["samples"], [version, tasks])

    def fill(batch: Batch) -> None:
        bound = [world.task(task) for task in world.payload(tasks)["tasks"]]
        played = samples_of(world, engine, settings, version, bound, samples={"sampled": settings.samples})
        for sample, replay in zip(played, replays_of(engine, bound, played), strict=True):
            made = save_trajectory(
                batch,
                sample.trajectory,
                purpose="arena",
                round=round,
                parents=[(version, "policy"), (tasks, "task_set")],
            )
            outcome = sample.trajectory.outcome
            batch.record(
                "rewards",
                {
                    "trajectory": made, "task": sample.task, "status": outcome.status, "reward": outcome.reward,
                    "failed": list(outcome.failed),
                },
            )  # fmt: skip
            if replay:
                gated(batch, replay, "trajectory", made, environment=sample.environment, round=round)

    return commit(context, world, "arena/attempts", round_key(round), derivation, fill).versions
