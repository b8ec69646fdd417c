"""Tools and their unit tests, kept when more than half of the tests pass (method.md 3)."""

from functools import partial

import dagster as dg

from agent_world.codec import encode
from agent_world.discovery.builds import Snapshot, Toolbox, make_tools
from agent_world.environments.tool_gate import ToolVerdict
from agent_world.identity import VersionId
from agent_world.lake.batch import Batch
from agent_world.world import save_database
from assets.checks import check_specs, prove_all
from assets.databases import snapshot_of
from assets.failures import failed_partitions
from assets.partitions import BY_100, environments
from assets.resources import EngineResource, LakeResource, RunResource
from assets.stage import Job, derive, map_jobs, report
from assets.verdicts import verdict

LEAST_ROUNDS = 2
"""In an environment that is accepted so many complexification rounds count at least, unless fewer are asked for."""


@dg.asset(
    group_name="environments",
    kinds={"delta", "python"},
    deps=["databases"],
    partitions_def=environments,
    backfill_policy=BY_100,
    check_specs=check_specs("tools", "tools", "tool_tests"),
)
def tools(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, engine: EngineResource
) -> dg.MaterializeResult:
    """Python tools over each database, workflow tables where the data carries one; all tested in the sandbox."""
    world, settings = lake.open(), run.settings
    jobs = []
    poor = failed_partitions(world, "databases", among=context.partition_keys)
    for key in (key for key in context.partition_keys if key not in poor):
        snapshot = snapshot_of(world, key, through=settings.complexification_rounds)
        derivation = derive(settings, ["complexification_rounds"], [snapshot.version])
        jobs.append(Job(partition=key, item=snapshot, derivation=derivation))
    least = min(LEAST_ROUNDS, settings.complexification_rounds)
    work = partial(make_tools, seed=settings.seed, least_rounds=least)
    failed = map_jobs(context, world, engine.engine, "tools", jobs, work, save_tools)
    rows = [row for row in world.read("tools") if row["partition"] in context.partition_keys]
    for key in context.partition_keys:
        own = [row for row in rows if row["partition"] == key]
        kept = [row for row in own if row["accepted"]]
        context.add_asset_metadata(
            {"proposed": len(own), "accepted": len(kept), "writing": sum(row["writes"] for row in kept)},
            partition_key=key,
        )
    counts = {"proposed": len(rows), "accepted": sum(bool(row["accepted"]) for row in rows), "failed": failed}
    made = [row["version_id"] for row in rows]
    return report(world, counts, made, prove_all(world, "tools", "tool_tests"))


def save_tools(snapshot: Snapshot, toolbox: Toolbox, batch: Batch, *, round: int = 0) -> None:
    """The database with its workflow tables, every tool with its tests, and what the gates said."""
    made = toolbox.proposal
    key = made.database.database_id
    roles = [(snapshot.seed.version, "theme")]
    if made.database != snapshot.database:  # where no workflow fits it is the same version
        roles.append((snapshot.version, "previous"))
    database = save_database(batch, made.database, made.files, roles)
    for found in toolbox.verdicts:
        _save_tool(batch, key, database, found, round)
    whole = toolbox.environment
    verdict(
        batch, "environment", "environment", database, environment=key, accepted=whole.accepted,
        reason=", ".join(whole.reasons) or None,
        evidence={"tools": whole.tools, "tests": whole.tests, "rounds": whole.rounds}, round=round,
    )  # fmt: skip


def _save_tool(batch: Batch, key: str, database: VersionId, found: ToolVerdict, round: int) -> None:
    tool = batch.create("tool", found.tool.tool_id, encode(found.tool), parents=[(database, "database")])
    batch.observe(tool, {"accepted": found.accepted, "accuracy": found.accuracy, "tests": len(found.results)})
    failed = [{"test": r.test.name, "reason": r.reason, "seen": r.seen, "expect": r.test.expect} for r in found.failed]
    verdict(
        batch, "tool", "tool", tool, environment=key, accepted=found.accepted, reason=", ".join(found.reasons) or None,
        evidence={"accuracy": found.accuracy, "detail": found.detail, "failed": failed}, round=round,
    )  # fmt: skip
    for number, result in enumerate(found.results, 1):
        name = f"{found.tool.tool_id}/{number:02d}"
        test = batch.create("tool_test", name, encode(result.test), parents=[(tool, "tool")])
        batch.observe(test, {"passed": result.passed, "reason": result.reason, "seen": result.seen})
