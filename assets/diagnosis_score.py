"""How right the diagnosis is on the environments of this run, by policies whose faults are known (method.md 9)."""

from collections import defaultdict
from dataclasses import asdict

import dagster as dg

from agent_world.arena.trial import Finding, Trial, draw_environments, hold
from agent_world.identity import VersionId, rng
from agent_world.lake.batch import Batch
from agent_world.rollouts.faults import FAULTS
from agent_world.tasks.model import Tier
from agent_world.world import World
from assets.checks import check_specs, prove_all
from assets.resources import EngineResource, LakeResource, RunResource
from assets.stage import Job, derive, map_jobs, report

_TASKS_A_TIER = 4
_TIERS: tuple[Tier, ...] = ("train", "hard")


@dg.asset(
    group_name="arena", kinds={"delta"}, deps=["tasks"],
    check_specs=check_specs("diagnosis_score", "diagnosis_scores"),
)  # fmt: skip
def diagnosis_score(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, engine: EngineResource
) -> dg.MaterializeResult:
    """Precision and recall of the diagnosis on policies with one planted fault each, the healthy one among them."""
    world, settings = lake.open(), run.settings
    chosen = _tasks(world, settings.seed)
    jobs = []
    for fault in FAULTS:
        played, struck = draw_environments(fault, list(chosen), seed=settings.seed)
        tasks = tuple(world.task(task) for key in played for task in chosen[key])
        trial = Trial(fault=fault, struck=tuple(struck), tasks=tasks, seed=settings.seed)
        derivation = derive(settings, [], [fault, *struck, *(bound.version for bound in tasks)])
        jobs.append(Job(partition=fault, item=trial, derivation=derivation))
    failed = map_jobs(context, world, engine.engine, "diagnosis/score", jobs, hold, _save)
    rows = world.read("diagnosis_scores", where={"state": "created"})
    counts = {"policies": len(rows), "episodes": sum(row["episodes"] for row in rows), "failed": failed}
    return report(world, counts, [row["version_id"] for row in rows], prove_all(world, "diagnosis_scores"))


def _tasks(world: World, seed: int) -> dict[str, list[VersionId]]:
    """A few accepted tasks of each environment, of both tiers where it has both."""
    known: dict[str, dict[str, list[VersionId]]] = defaultdict(lambda: defaultdict(list))
    for row in world.read("tasks", where={"state": "created", "purpose": "general", "tier": list(_TIERS)}):
        known[row["partition"]][row["tier"]].append(VersionId(row["version_id"]))
    source = rng("trial-tasks", seed)
    return {
        key: [
            task for tier in _TIERS for task in source.sample(sorted(tiers[tier]), min(_TASKS_A_TIER, len(tiers[tier])))
        ]
        for key, tiers in sorted(known.items())
    }


def _save(trial: Trial, finding: Finding, batch: Batch) -> None:
    payload = {
        "policy": trial.fault,
        "environments": len({bound.environment.environment_id for bound in trial.tasks}),
        "episodes": finding.episodes,
        "planted": dict(finding.planted),
        "found": dict(finding.found),
        **asdict(finding.score),
    }
    parents = [(bound.version, "task") for bound in trial.tasks]
    batch.create("diagnosis_score", f"diagnosis-score-{trial.fault.replace('_', '-')}", payload, parents=parents)
