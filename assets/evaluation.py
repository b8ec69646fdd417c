"""Evaluation on the fixed held-out set, on which nothing is tuned: greedy and sampled, a row a sample."""

import re
from collections import defaultdict
from contextlib import closing

import dagster as dg

from agent_world.arena.evaluation import Mode, pass_rate
from agent_world.arena.labels import label_failure
from agent_world.engine import Engine
from agent_world.identity import VersionId
from agent_world.lake import snapshots
from agent_world.lake.batch import Batch
from agent_world.reporting import plots
from agent_world.reporting.figures import rates_by_point
from agent_world.world import World
from assets.checks import check_specs, prove_all
from assets.partitions import IN_ONE_RUN, round_number, rounds
from assets.playing import samples_of
from assets.progress import Progress
from assets.resources import EngineResource, LakeResource, RunResource, TrackerResource
from assets.settings import Settings
from assets.stage import commit, derive, report
from assets.traces import keep_some, show
from assets.tracking import Tracker
from assets.training import checkpoint, task_set

_POLICY = re.compile(r"pi\d+")
"""Names of checkpoints that a round ends with: no control, nothing on the way."""


def points(settings: Settings, round: int) -> list[str]:
    """The checkpoints that are measured in a round, in order."""
    if round == 0:
        return ["untrained", "sft", "pi0"]
    names = [f"pi{round}-demonstrations", f"pi{round}"]
    return [*names, f"control{round}"] if settings.control else names


@dg.asset(
    group_name="training", kinds={"delta"}, deps=["base_policy", "round_policy"], partitions_def=rounds,
    backfill_policy=IN_ONE_RUN, check_specs=check_specs("evaluation", "evaluations", "trajectories"),
)  # fmt: skip
def evaluation(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, tracker: TrackerResource,
    engine: EngineResource,
) -> dg.MaterializeResult:  # fmt: skip
    """Pass rates on the held-out set with bootstrap intervals over tasks, for each checkpoint of the round."""
    world, settings, log = lake.open(), run.settings, tracker.open()
    made, runs = [], {}
    for key in context.partition_keys:
        round = round_number(key)
        known = {row["name"] for row in world.read("checkpoints", columns=["name"])}
        names = [name for name in points(settings, round) if name in known]
        mlflow_run = log.round_run(key, {}, {"dagster/run_id": context.op_execution_context.run_id})
        with closing(Progress("evaluation", len(names))) as progress:
            for name in names:
                made.append(measure(context, world, engine.engine, log, mlflow_run, settings, name=name, round=round))
                progress.advance(name)
        best = best_policy(world)
        if best:
            log.crown(best)
        runs[key] = mlflow_run
        if log.is_open(mlflow_run):
            tags = {"lake/events_version": str(world.events_version()), "lake/snapshot": snapshots.create(world)}
            log.finish(mlflow_run, tags)
    series = rates_by_point(world)
    rates = {f"{point} {mode}": rate for mode, shown in series.items() for point, rate, _, _ in shown}
    return report(
        world, {**rates, "mlflow/runs": runs}, made, prove_all(world, "evaluations", "trajectories"),
        plots={"pass rates": plots.pass_rates(series)},
    )  # fmt: skip


def measure(
    context: dg.AssetExecutionContext,
    world: World,
    engine: Engine,
    log: Tracker,
    mlflow_run: str,
    settings: Settings,
    *,
    name: str,
    round: int,
) -> VersionId:
    """Evaluate one checkpoint on the held-out set, unless that is done; returns the checkpoint's version."""
    version = checkpoint(world, name)
    tasks = task_set(world, "held_out")
    derivation = derive(settings, ["samples"], [version, tasks["version_id"]])

    def fill(batch: Batch) -> None:
        bound = [world.task(task) for task in tasks["tasks"]]
        wanted: dict[Mode, int] = {"greedy": 1, "sampled": settings.samples}
        samples = samples_of(world, engine, settings, version, bound, samples=wanted)
        for sample in samples:
            failure = label_failure(sample.trajectory, world.task(sample.task).task)
            label = failure and failure.label
            row = sample.row(point=name, task_set=tasks["version_id"], round=round, failure=label)
            batch.record("evaluations", row)
        shown = [sample for sample in samples if sample.mode == "sampled"]
        keep_some(batch, shown, policy=version, task_set=VersionId(tasks["version_id"]), round=round)

    batch = commit(context, world, f"evaluation/{name}", "", derivation, fill)
    measured = {"point": name, "policy_version": version, "task_set": tasks["version_id"]}
    for mode in ("greedy", "sampled"):
        rate = pass_rate(world.read("evaluations", where={**measured, "mode": mode}))
        if rate:
            log.log(mlflow_run, [(f"held_out/{name}/{mode}", rate.estimate, 0)])
    show(world, log, mlflow_run, batch.versions, point=name, policy=version)
    return version


def best_policy(world: World) -> VersionId | None:
    """The policy of a round with the best sampled pass rate on the held-out set, of equals the first; None before any.

    Controls and checkpoints on the way to a policy are measured too, but never chosen.
    """
    names = {row["name"] for row in world.read("checkpoints", where={"state": "created"}, columns=["name"])}
    current = {checkpoint(world, name) for name in names if _POLICY.fullmatch(name)}
    by_policy = defaultdict(list)
    held_out = task_set(world, "held_out")["version_id"]
    for row in world.read("evaluations", where={"task_set": held_out, "mode": "sampled"}):
        if row["policy_version"] in current:
            by_policy[row["policy_version"]].append(row)
    rates = {policy: rate.estimate for policy, rows in by_policy.items() if (rate := pass_rate(rows))}
    return VersionId(max(rates, key=rates.__getitem__)) if rates else None
