"""How a stage trains: one job in a subprocess, its checkpoint and metrics committed together, its curves in MLflow."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg

from agent_world.codec import decode
from agent_world.identity import VersionId, sha256
from agent_world.lake.batch import Batch
from agent_world.lake.code import code_version
from agent_world.rollouts.model import Trajectory
from agent_world.tasks.model import Purpose
from agent_world.world import World, save_trajectory
from assets.partitions import round_key
from assets.progress import Progress
from assets.resources import TrackerResource, work_folder
from assets.settings import Settings
from assets.stage import commit, derive
from assets.verdicts import verdict
from trainers.gate import objections
from trainers.job import Hyper, TrainJob, TrainResult
from trainers.metrics import METRICS
from trainers.supervisor import supervise


def demonstrations(world: World, *purposes: Purpose, round: int = 0) -> tuple[VersionId, ...]:
    """The demonstrations of the tasks that were made in a round for these purposes, sorted."""
    tasks = world.read("tasks", where={"round": round, "state": "created"}, columns=["version_id", "purpose"])
    wanted = {row["version_id"] for row in tasks if row["purpose"] in purposes}
    where = {"status": "pass", "purpose": "demonstration", "state": "created"}
    rows = world.read("trajectories", where=where, columns=["version_id", "task"])
    return tuple(sorted(VersionId(row["version_id"]) for row in rows if row["task"] in wanted))


def task_set(world: World, name: str) -> dict[str, Any]:
    """The current version of a named task set.

    Raises:
        KeyError: there is none.
    """
    rows = [row for row in world.read("task_sets", where={"name": name, "state": "created"}) if row["tasks"]]
    if not rows:
        raise KeyError(name)
    return rows[-1]


def checkpoint(world: World, name: str) -> VersionId:
    """The current version of a named checkpoint; of one that its gate rejected, what it was trained from.

    Raises:
        NotFoundError: there is none.
    """
    version = world.resolve("checkpoint", name)
    rows = {row["version_id"]: row for row in world.read("checkpoints", columns=["version_id", "base", "accepted"])}
    while rows[version]["accepted"] is False:
        version = VersionId(rows[version]["base"])
    return version


def tracked(world: World, names: Sequence[str]) -> dict[str, str]:
    """Where MLflow keeps these checkpoints, whether they are used or not: name to run."""
    rows = world.read("checkpoints", where={"state": "created", "name": list(names)}, columns=["name", "mlflow_run"])
    return {row["name"]: row["mlflow_run"] for row in rows}


def job_of(
    world: World, settings: Settings, *, method: str, base: VersionId | None, hyper: Hyper,
    trajectories: tuple[VersionId, ...] = (), tasks: dict[str, Any] | None = None,
    options: Mapping[str, float] | None = None,
) -> TrainJob:  # fmt: skip
    """A job of the embedded back-end over the environments of what it trains on: trajectories, or a task set."""
    pinned = {
        row["version_id"]: row["environments"][0] for row in world.read("tasks", columns=["version_id", "environments"])
    }
    used = tasks["tasks"] if tasks else _played(world, trajectories)
    return TrainJob(
        method=method,
        backend="trl",
        lake=world.uri,
        base=base,
        task_set=VersionId(tasks["version_id"]) if tasks else None,
        environments=tuple(sorted({VersionId(pinned[task]) for task in used})),
        hyper=hyper,
        seed=settings.seed,
        trajectories=trajectories,
        options=dict(options or {}),
    )


def _played(world: World, trajectories: Sequence[VersionId]) -> list[str]:
    """The tasks of these trajectories."""
    wanted = set(trajectories)
    rows = world.read("trajectories", columns=["version_id", "task"])
    return [row["task"] for row in rows if row["version_id"] in wanted]


def train(
    context: dg.AssetExecutionContext,
    world: World,
    tracker: TrackerResource,
    settings: Settings,
    *,
    name: str,
    round: int,
    job: TrainJob,
) -> VersionId:
    """Run the job unless its checkpoint is in the lake; returns the version to go on from (see `checkpoint`)."""
    parents = [(version, role) for version, role in ((job.task_set, "task_set"), (job.base, "base")) if version]
    derivation = derive(settings, [], [job.job_hash, name])

    def fill(batch: Batch) -> None:
        root = work_folder(world.uri, f"training/{code_version().replace('+', '-')}")
        rows: list[dict[str, Any]] = []
        steps = max(1, job.hyper.steps if job.method != "init" else 1)
        with closing(Progress(name, steps)) as progress:
            result = supervise(job, root, on_metrics=lambda row: _heard(rows, row, progress))
        _save(batch, result, job, rows, name=name, round=round, parents=parents)
        for row in rows:
            for metric in METRICS:
                if row.get(metric) is not None:
                    batch.record(
                        "training_metrics",
                        {
                            "job": job.job_hash,
                            "stage": name,
                            "step": row["step"],
                            "metric": metric,
                            "value": row[metric],
                        },
                    )

    batch = commit(context, world, f"checkpoint/{name}", "", derivation, fill)
    *_, version = batch.versions  # behind the rollouts that are kept
    _track(world, tracker, version, job, name=name, round=round, dagster_run=context.op_execution_context.run_id)
    return checkpoint(world, name)


def _heard(rows: list[dict[str, Any]], row: dict[str, Any], progress: Progress) -> None:
    rows.append(row)
    shown = [
        f"{metric} {row[metric]:.3f}" for metric in ("loss", "reward_mean", "entropy") if row.get(metric) is not None
    ]
    progress.reach(row["step"], ", ".join(shown))


def _save(
    batch: Batch, result: TrainResult, job: TrainJob, rows: Sequence[Mapping[str, Any]], *, name: str, round: int,
    parents: Sequence[tuple[VersionId, str]],
) -> None:  # fmt: skip
    folder = Path(result.checkpoint)
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    rollouts = Path(result.rollouts_file).read_text("utf-8").splitlines() if result.rollouts_file else []
    played = [(parent, "policy" if role == "base" else role) for parent, role in parents]
    lived = [
        save_trajectory(
            batch, decode(Trajectory, json.loads(line)), purpose="training", round=round, parents=played
        )
        for line in rollouts
    ]  # fmt: skip
    payload = {
        "name": name,
        "round": round,
        "digest": result.digest,
        "method": job.method,
        "task_set": job.task_set,
        "base": job.base,
        "job": job.job_hash,
        "steps_done": result.steps_done,
    }
    trained_on = [(trajectory, "demonstration") for trajectory in job.trajectories]
    trained_on += [(trajectory, "rollout") for trajectory in dict.fromkeys(lived)]
    version = batch.create(
        "checkpoint", name, payload, parents=[*parents, *trained_on], files=files, blob_in_identity=False
    )
    against = objections(job, result, rows)
    batch.observe(version, {"accepted": not against})
    verdict(
        batch, "checkpoint", "checkpoint", version, round=round, accepted=not against,
        reason=against[0] if against else None,
        evidence={"steps_done": result.steps_done, "asked": job.hyper.steps, "said": result.reason},
    )  # fmt: skip


def _track(
    world: World,
    tracker: TrackerResource,
    version: VersionId,
    job: TrainJob,
    *,
    name: str,
    round: int,
    dagster_run: str,
) -> None:
    log = tracker.open()
    log.loop_run({"seed": job.seed}, {"lake": world.uri, "dagster/run_id": dagster_run})
    run = log.round_run(round_key(round), {"seed": job.seed}, {"dagster/run_id": dagster_run})
    rows = world.read("training_metrics", where={"job": job.job_hash})
    log.log(run, [(f"{name}/{row['metric']}", row["value"], row["step"]) for row in rows])
    if checkpoint(world, name) == version:
        log.register(run, version, world.files(version), {"round": round_key(round), "lake": world.uri})
    with world.begin("checkpoint/mlflow", name, derivation=sha256(f"{version} {run}")) as batch:
        if not batch.done:
            batch.observe(version, {"mlflow_run": run})
