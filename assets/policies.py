"""The policies before the first round: untrained, cold start by SFT, and pi0 by GRPO on the general training set."""

import dagster as dg

from agent_world.reporting import plots
from agent_world.reporting.figures import GRPO_CURVES, curves
from assets.checks import check_specs, prove_all
from assets.recipes import GRPO_OPTIONS, GRPO_TASKS, cold_start_hyper, grpo_hyper, init_hyper
from assets.resources import EngineResource, LakeResource, RunResource, TrackerResource
from assets.screening import learnable
from assets.stage import report
from assets.training import checkpoint, demonstrations, job_of, task_set, tracked, train


@dg.asset(group_name="training", kinds={"delta"}, deps=["task_sets"])
def untrained(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, tracker: TrackerResource
) -> dg.MaterializeResult:
    """A tiny causal LM with random weights; its tokenizer is made from the words of the demonstrations."""
    world, settings = lake.open(), run.settings
    shown = demonstrations(world, "general", "practice")
    job = job_of(world, settings, method="init", base=None, hyper=init_hyper(settings), trajectories=shown)
    version = train(context, world, tracker, settings, name="untrained", round=0, job=job)
    return report(world, {"demonstrations": len(shown)}, [version])


@dg.asset(group_name="training", kinds={"delta", "torch"}, deps=["untrained"])
def cold_start(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, tracker: TrackerResource
) -> dg.MaterializeResult:
    """SFT on the solver's successful trajectories of practice tasks: what is imitated is not what is rewarded later."""
    world, settings = lake.open(), run.settings
    shown = demonstrations(world, "practice")
    job = job_of(
        world, settings, method="sft", base=checkpoint(world, "untrained"),
        hyper=cold_start_hyper(settings), trajectories=shown,
    )  # fmt: skip
    version = train(context, world, tracker, settings, name="sft", round=0, job=job)
    counts = {"demonstrations": len(shown), "mlflow/runs": tracked(world, ["sft"])}
    drawn = {"loss": plots.curves(curves(world, ("policy_loss", "context_loss"), ["sft"]))}
    return report(world, counts, [version], plots=drawn)


@dg.asset(
    group_name="training", kinds={"delta", "torch"}, deps=["cold_start"],
    check_specs=check_specs("base_policy", "checkpoints", "training_metrics", "task_sets", "trajectories"),
)  # fmt: skip
def base_policy(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, tracker: TrackerResource,
    engine: EngineResource,
) -> dg.MaterializeResult:  # fmt: skip
    """pi0: multi-environment GRPO from the cold start, on those tasks of the general training set that it can learn."""
    world, settings = lake.open(), run.settings
    general, start = task_set(world, "training"), checkpoint(world, "sft")
    tasks = learnable(
        context, world, engine.engine, settings, policy=start, name="pi0", round=0, sets=[general],
        groups=settings.grpo_steps * GRPO_TASKS,
    )  # fmt: skip
    job = job_of(
        world, settings, method="grpo", base=start, tasks=tasks,
        hyper=grpo_hyper(settings, tasks=tasks["size"], round=0), options=GRPO_OPTIONS,
    )  # fmt: skip
    version = train(context, world, tracker, settings, name="pi0", round=0, job=job)
    counts = {"tasks": general["size"], "learnable": tasks["size"], "mlflow/runs": tracked(world, ["pi0"])}
    drawn = {"training": plots.curves(curves(world, GRPO_CURVES, ["pi0"]))}
    proofs = prove_all(world, "checkpoints", "training_metrics", "task_sets", "trajectories")
    return report(world, counts, [version], proofs, plots=drawn)
