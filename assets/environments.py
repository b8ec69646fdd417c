"""Accepted environments: a database and the tools that passed, pinned by hash (method.md 3)."""

import dagster as dg

from agent_world.codec import decode
from agent_world.discovery.model import Theme
from agent_world.identity import VersionId
from agent_world.lake.batch import Batch
from agent_world.world import World, save_environment
from assets.checks import check_specs, prove_all
from assets.partitions import BY_100, environments
from assets.resources import LakeResource, RunResource
from assets.settings import Settings
from assets.stage import commit, derive, report


@dg.asset(
    name="environments",
    group_name="environments",
    kinds={"delta"},
    deps=["tools"],
    partitions_def=environments,
    backfill_policy=BY_100,
    check_specs=check_specs("environments", "environments"),
)
def accepted_environments(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource
) -> dg.MaterializeResult:
    """Environments with at least one valid tool and one valid test, whose reset gives the same digest twice."""
    world, settings = lake.open(), run.settings
    made = []
    for key in context.partition_keys:
        made += accept(context, world, settings, key, round=0)
    rows = world.read("environments", where={"state": "created"})
    for row in rows:
        if row["environment_id"] in context.partition_keys:
            context.add_asset_metadata(
                {"tools": row["tools"], "tables": row["tables"], "title": row["title"]},
                partition_key=row["environment_id"],
            )
    counts = {"environments": len(rows), "rejected": len(context.partition_keys) - len(made)}
    return report(world, counts, made, prove_all(world, "environments"))


def accept(
    context: dg.AssetExecutionContext, world: World, settings: Settings, key: str, *, round: int,
    category: str | None = None,
) -> tuple[VersionId, ...]:  # fmt: skip
    """The environment that was built in `round` of the arena (0 is before the first), when its gate accepted it.

    A later version stays in the `category` of its theme; the taxonomy gives the first one its own.
    """
    gates = world.read("gate_verdicts", where={"gate": "environment", "environment": key, "round": round})
    if not gates or not gates[-1]["accepted"]:
        return ()
    database = VersionId(gates[-1]["subject"])
    parts = parts_of(world, database, round)
    derivation = derive(settings, [], [database, *(row["version_id"] for row in parts)])

    def fill(batch: Batch) -> None:
        version = _save(world, batch, database, parts, round)
        if category:
            batch.observe(version, {"category": category})

    return commit(context, world, "environments", key, derivation, fill).versions


def built(world: World, *, through: int) -> dict[str, dict]:
    """Environment key to the row of its version as it was after round `through` of the arena."""
    rows = world.read("environments", where={"state": ["created", "superseded"]})
    rows.sort(key=lambda row: row["state"] == "created")  # what was made again is current, though it came first
    return {row["environment_id"]: row for row in rows if (row["round"] or 0) <= through}


def parts_of(world: World, database: VersionId, round: int) -> list[dict]:
    """The tools that were made for exactly this database version and that the gate of this round accepted.

    Not those that are `accepted`: that is the last word on a version, which a later database may share.
    """
    children = {row["child"] for row in world.read("edges", where={"parent": database, "role": "database"})}
    verdicts = world.read(
        "gate_verdicts", where={"gate": "tool", "accepted": True, "round": round}, columns=["subject"]
    )
    kept = {row["subject"] for row in verdicts} & children
    return [row for row in world.read("tools") if row["version_id"] in kept]


def _save(world: World, batch: Batch, database: VersionId, tools: list[dict], round: int) -> VersionId:
    row = world.payload(database)
    theme = VersionId(row["theme"])
    seed = decode(Theme, world.payload(theme))
    version = save_environment(
        batch,
        environment_id=row["database_id"],
        title=seed.title,
        description=seed.description,
        theme=theme,
        database=database,
        tools=[VersionId(tool["version_id"]) for tool in tools],
    )
    names = {tool["version_id"] for tool in tools}
    tests = [row for row in world.read("edges", where={"role": "tool"}) if row["parent"] in names]
    passed = {row["version_id"] for row in world.read("tool_tests", where={"passed": True})}
    batch.observe(
        version,
        {
            "tables": len(row["tables"]),
            "tools": len(tools),
            "tests": sum(test["child"] in passed for test in tests),
            "writing_tools": sum(tool["writes"] for tool in tools),
            "round": round,
        },
    )
    return version
