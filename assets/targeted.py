"""Targeted tasks: what the diagnosis of a round asked for, one partition for each weak environment (method.md 7)."""

import dagster as dg

from agent_world.codec import decode
from agent_world.identity import VersionId
from agent_world.tasks.model import Task
from assets.checks import check_specs, prove_all
from assets.diagnosis import diagnosis_of
from assets.enlargement import enlarge
from assets.environments import built
from assets.partitions import IN_ONE_RUN, round_key, round_number, targeted, targeted_key
from assets.resources import EngineResource, LakeResource, RunResource
from assets.stage import report
from assets.tasks import order_for, produce_all, save_set

WRITTEN = ("databases", "tools", "tool_tests", "environments", "tasks", "trajectories", "gate_verdicts", "task_sets")
"""The tables that have rules and that targeting may write."""


def set_name(round: int) -> str:
    """The name of the targeted task set of a round."""
    return f"targeted-{round_key(round)}"


@dg.asset(
    group_name="arena", kinds={"delta"}, deps=["diagnosis"], partitions_def=targeted, backfill_policy=IN_ONE_RUN,
    check_specs=check_specs("targeted_tasks", *WRITTEN),
)  # fmt: skip
def targeted_tasks(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, engine: EngineResource
) -> dg.MaterializeResult:
    """Tasks that practise the diagnosed ability of each weak environment, through the same gates as all others.

    Beside those that are trained on for reward there are more of them that are only demonstrated.
    Where the guideline says that the database lacks variety, it is enriched first and the environment built again.
    """
    world, settings = lake.open(), run.settings
    made, served, enriched = [], {}, {}
    for round in sorted({round_number(key) for key in context.partition_keys}):
        diagnosis, found = diagnosis_of(world, round)
        guidelines = {guideline.environment: guideline for guideline in found.guidelines}
        asked = [key.partition("|")[2] for key in context.partition_keys if round_number(key) == round]
        names = [name for name in asked if name in guidelines]  # what an earlier diagnosis asked for is no longer
        poor = [name for name in names if guidelines[name].enrich]
        enriched[round_key(round)] = enlarge(
            context, world, engine.engine, settings, poor, round=round, diagnosis=diagnosis
        )
        for purpose, count in (("targeted", settings.targeted), ("practice", settings.targeted_practice)):
            orders = [
                order_for(
                    world, settings, name, count=count, purpose=purpose, round=round, guideline=guidelines[name],
                    diagnosis=diagnosis,
                )
                for name in names
            ]  # fmt: skip
            produce_all(context, world, engine.engine, settings, f"{purpose}/{round_key(round)}", orders)
        tasks = save_set(context, world, settings, set_name(round), purpose="targeted", round=round)
        made.append(tasks)
        for name in names:
            environment = built(world, through=round)[name]["version_id"]
            own = [decode(Task, world.payload(VersionId(task))) for task in world.payload(tasks)["tasks"]]
            own = [task for task in own if task.environments == (environment,)]
            right = sum(bool(task.serves) for task in own)
            served[name] = right / len(own) if own else None
            context.add_asset_metadata(
                {
                    "tasks": len(own), "wanted": settings.targeted, "exercise_the_ability": right,
                    "guideline": guidelines[name].text,
                },
                partition_key=targeted_key(round, name),
            )  # fmt: skip
    counts = {"share_that_exercises": served, "enriched": enriched}
    return report(world, counts, made, prove_all(world, *WRITTEN))
