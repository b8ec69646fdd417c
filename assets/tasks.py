"""Verifiable tasks: tool graphs, candidates of both kinds, every gate, and the named sets (method.md 5)."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from agent_world.arena.model import Guideline
from agent_world.codec import decode, encode
from agent_world.engine import Engine
from agent_world.environments.model import Environment
from agent_world.identity import VersionId, seed_of
from agent_world.lake.batch import Batch
from agent_world.reporting import plots
from agent_world.reporting.figures import calls_by_kind
from agent_world.reporting.ladder import ladder, ladders
from agent_world.tasks.graph import tool_graph
from agent_world.tasks.model import Purpose, Task
from agent_world.tasks.production import Judged, Order, make
from agent_world.world import World, save_task, save_trajectory
from assets.checks import check_specs, prove_all
from assets.environments import built
from assets.partitions import BY_100, environments
from assets.resources import EngineResource, LakeResource, RunResource
from assets.settings import Settings
from assets.stage import Job, commit, derive, map_jobs, report
from assets.verdicts import gated


@dg.asset(
    group_name="tasks", kinds={"delta"}, deps=["environments"], partitions_def=environments, backfill_policy=BY_100
)
def tool_graphs(context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource) -> dg.MaterializeResult:
    """The complete weighted digraph over each environment's tools, every edge with its evidence."""
    world, settings = lake.open(), run.settings
    keys = accepted_keys(world, context.partition_keys)
    accepted = built(world, through=0)
    versions = [accepted[key]["version_id"] for key in keys]
    for version in versions:
        save_graph(context, world, settings, world.environment(version))
    edges = world.read("tool_graph_edges", columns=["weight"])
    weights = {
        name: sum(e["weight"] == w for e in edges) for name, w in (("strong", 3), ("weak", 2), ("independent", 1))
    }
    return report(world, weights, versions)


@dg.asset(
    group_name="tasks", kinds={"delta"}, deps=["tool_graphs"], partitions_def=environments, backfill_policy=BY_100,
    check_specs=check_specs("tasks", "tasks", "trajectories", "gate_verdicts"),
)  # fmt: skip
def tasks(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, engine: EngineResource
) -> dg.MaterializeResult:
    """Graph and program tasks that passed every gate, for training and for the fixed held-out set; some to imitate."""
    world, settings = lake.open(), run.settings
    keys = accepted_keys(world, context.partition_keys)
    purposes: list[tuple[Purpose, int]] = [
        ("general", settings.tasks), ("held_out", settings.held_out), ("practice", settings.practice)
    ]  # fmt: skip
    failed: list[str] = []
    for purpose, count in purposes:
        orders = [order_for(world, settings, key, count=count, purpose=purpose) for key in keys]
        failed += produce_all(context, world, engine.engine, settings, f"tasks/{purpose}", orders)
    rows = world.read("tasks", columns=["version_id", "accepted", "tier", "partition", "kind"])
    for key in context.partition_keys:
        own = [row for row in rows if row["partition"] == key]
        kept = [row for row in own if row["accepted"]]
        context.add_asset_metadata({"candidates": len(own), "accepted": len(kept)}, partition_key=key)
    accepted = [row["version_id"] for row in rows if row["accepted"]]
    counts = {"candidates": len(rows), "accepted": len(accepted), "failed": failed}
    drawn = {
        "validity ladder": plots.ladder(ladder(ladders(world).rewarded)),
        "calls": plots.histogram(calls_by_kind(world), "gold calls"),
    }
    return report(world, counts, accepted, prove_all(world, "tasks", "trajectories", "gate_verdicts"), plots=drawn)


@dg.asset(group_name="tasks", kinds={"delta"}, deps=["tasks"], check_specs=check_specs("task_sets", "task_sets"))
def task_sets(context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource) -> dg.MaterializeResult:
    """The general training set and the held-out set, as sorted lists of exact versions."""
    world, settings = lake.open(), run.settings
    made = [
        save_set(context, world, settings, "training", purpose="general"),
        save_set(context, world, settings, "held_out", purpose="held_out"),
    ]
    sizes = {row["name"]: row["size"] for row in world.read("task_sets")}
    return report(world, sizes, made, prove_all(world, "task_sets"))


def save_graph(context: dg.AssetExecutionContext, world: World, settings: Settings, environment: Environment) -> None:
    """The tool graph of one environment version, a row an edge."""

    def fill(batch: Batch) -> None:
        for edge in tool_graph(environment).edges:
            batch.record(
                "tool_graph_edges",
                {
                    "environment": environment.version, "from_tool": edge.source, "to_tool": edge.target,
                    "weight": edge.weight, "evidence": [encode(item) for item in edge.evidence],
                },
            )  # fmt: skip

    derivation = derive(settings, [], [environment.version])
    commit(context, world, "tool_graphs", environment.environment_id, derivation, fill)


def accepted_keys(world: World, keys: Sequence[str]) -> list[str]:
    """Those of `keys` that name an accepted environment, in order."""
    known = {row["environment_id"] for row in world.read("environments", where={"state": "created"})}
    return [key for key in keys if key in known]


def order_for(
    world: World, settings: Settings, key: str, *, count: int, purpose: Purpose, round: int = 0,
    guideline: Guideline | None = None, diagnosis: VersionId | None = None,
) -> Order:  # fmt: skip
    """An order for one environment; none of its tasks may repeat one that was made for an earlier purpose.

    It is the environment as it was then. Only what a guideline asked for sees what its own round enriched; the control
    sees nothing that a diagnosis brought about.
    """
    through = {"arena": round - 1, "control": 0}.get(purpose, round)
    environment = world.environment(built(world, through=through)[key]["version_id"])
    others = [
        decode(Task, world.payload(VersionId(row["version_id"])))
        for row in world.read("tasks", where={"partition": key}, columns=["version_id", "tier", "purpose", "round"])
        if row["tier"] and _rank(row["purpose"], row["round"]) < _rank(purpose, round)
    ]
    return Order(
        environment=environment,
        count=count,
        seed=seed_of(settings.seed, key, purpose, round),
        purpose=purpose,
        round=round,
        guideline=guideline,
        diagnosis=diagnosis,
        exclude=tuple(others),
    )


_ORDER = ("general", "held_out", "arena", "targeted", "practice", "control")


def _rank(purpose: Purpose, round: int) -> tuple[int, int]:
    """The order in which tasks are made. Only what comes before is excluded, so that a resumed run orders the same."""
    return round, _ORDER.index(purpose)


def produce_all(
    context: dg.AssetExecutionContext,
    world: World,
    engine: Engine,
    settings: Settings,
    stage: str,
    orders: Sequence[Order],
) -> list[str]:
    """Fill the orders in parallel; returns the environments whose work raised."""
    jobs = []
    for order in orders:
        parents = [order.environment.version, *(task.task_id for task in order.exclude)]
        derivation = derive(settings, [], [*parents, str(order.count), str(order.diagnosis)])
        jobs.append(Job(partition=order.environment.environment_id, item=order, derivation=derivation))
    return map_jobs(context, world, engine, stage, jobs, make, save_judged)


def save_judged(order: Order, judged: Sequence[Judged], batch: Batch) -> None:
    """Every candidate with its verdicts; the solver's runs of those that came so far."""
    key = order.environment.environment_id
    asked = [(order.diagnosis, "diagnosis")] if order.diagnosis else []
    for task, found in judged:
        version = save_task(batch, task, asked)
        batch.observe(
            version,
            {
                "accepted": found.accepted,
                "tier": found.tier,
                "solver_passes": found.solver_passes,
                "random_passes": found.random_passes,
            },
        )
        for gate in found.gates:
            gated(batch, gate, "task", version, environment=key, round=task.round)
        for trajectory in found.trajectories:
            save_trajectory(batch, trajectory, purpose="solver", round=task.round)
        if found.demonstration and found.replay:
            purpose = "demonstration" if found.replay.accepted else "solver"  # which is kept, but never imitated
            shown = save_trajectory(batch, found.demonstration, purpose=purpose, round=task.round)
            gated(batch, found.replay, "trajectory", shown, environment=key, round=task.round)


def save_set(
    context: dg.AssetExecutionContext, world: World, settings: Settings, name: str, *, purpose: Purpose, round: int = 0
) -> VersionId:
    """A named set: every accepted task of tier train that was made for this purpose and round."""
    found = world.read("tasks", where={"purpose": purpose, "round": round, "tier": "train", "state": "created"})
    versions = sorted(row["version_id"] for row in found)
    shown: dict[Purpose, str] = {"general": "training"}
    payload: dict[str, Any] = {
        "name": name, "purpose": shown.get(purpose, purpose), "round": round, "tasks": versions, "size": len(versions)
    }  # fmt: skip

    def fill(batch: Batch) -> None:
        batch.create("task_set", name, payload, parents=[(VersionId(version), "task") for version in versions])

    (version,) = commit(context, world, f"task_set/{name}", "", derive(settings, [], versions), fill).versions
    return version
