"""Complexification: each round a richer version of the database (method.md 2, `phi`)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import dagster as dg

from agent_world.codec import decode
from agent_world.discovery.builds import Enriched, Seed, Snapshot, corpus, enrich
from agent_world.discovery.model import Judgement, Theme
from agent_world.environments.model import Database
from agent_world.identity import VersionId, canonical_json, sha256
from agent_world.lake.batch import Batch
from agent_world.world import Parents, World, save_database
from assets.checks import check_specs, prove_all
from assets.partitions import BY_100, environments
from assets.resources import EngineResource, LakeResource, RunResource
from assets.stage import Job, derive, map_jobs, report
from assets.verdicts import judged


@dg.asset(
    group_name="environments",
    kinds={"delta"},
    deps=["mined"],
    partitions_def=environments,
    backfill_policy=BY_100,
    check_specs=check_specs("databases", "databases"),
)
def databases(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, engine: EngineResource
) -> dg.MaterializeResult:
    """Richer versions of each environment's database, up to two rounds; every round adds data from a new source."""
    world, settings = lake.open(), run.settings
    jobs = []
    for key in context.partition_keys:
        snapshot = snapshot_of(world, key, through=0)
        derivation = derive(settings, ["complexification_rounds"], [snapshot.version])
        jobs.append(Job(partition=key, item=snapshot, derivation=derivation))
    work = partial(enrich, rounds=settings.complexification_rounds)
    failed = map_jobs(context, world, engine.engine, "databases", jobs, work, _save)
    keep_times(world)
    rows = world.read("databases", where={"database_id": list(context.partition_keys)})
    for row in rows:
        context.add_asset_metadata(
            {"tables": len(row["tables"]), "documents": len(row["documents"]), "round": row["round"]},
            partition_key=row["database_id"],
        )
    counts = {"versions": len(rows), "failed": failed}
    return report(world, counts, [row["version_id"] for row in rows], prove_all(world, "databases"))


def snapshot_of(world: World, key: str, *, through: int) -> Snapshot:
    """The database of an environment before workflow tables, as rich as round `through` left it, with its theme.

    What later rounds of the arena add is never seen by an earlier stage, so that a resumed run finds its work done.
    """
    row = [
        row
        for row in world.read("databases", where={"database_id": key, "state": ["created", "superseded"]})
        if not any(table["workflow"] for table in row["tables"]) and row["round"] <= through
    ][-1]
    version = VersionId(row["version_id"])
    theme = VersionId(row["theme"])
    return Snapshot(
        version=version,
        database=decode(Database, world.payload(version)),
        files=world.files(version),
        seed=Seed(version=theme, theme=decode(Theme, world.payload(theme))),
    )


def _save(snapshot: Snapshot, rounds: list[Enriched | Judgement], batch: Batch) -> None:
    parent = snapshot.version
    for number, made in enumerate(rounds, 1):
        if isinstance(made, Judgement):
            refuse_round(batch, made, snapshot.database.database_id, number)
        else:
            parent = save_round(batch, made, [(parent, "previous"), (snapshot.seed.version, "theme")])


def save_round(batch: Batch, made: Enriched, parents: Parents, *, round: int = 0) -> VersionId:
    """A richer database, with the word of its gate."""
    version = save_database(batch, made.database, made.files, parents)
    key = made.database.database_id
    judged(batch, "complexify", "database", version, made.judgement, environment=key, round=round)
    return version


def keep_times(world: World) -> None:
    """Observe when the sources that each database version brought in were read first.

    In a batch of its own: with a clock's word in the batch of a stage, two lakes of one seed would differ in it.
    """
    times = {}
    for row in world.read("databases"):
        brought = {item["source"]["package"] for item in _added(row) if item["source"]}
        time = corpus().retrieved_at(brought)
        if time and time != row["retrieved_at"] and (row["state"] == "created" or not row["retrieved_at"]):
            times[row["version_id"]] = time
    if times:
        with world.begin("retrieved", derivation=sha256(canonical_json(times))) as batch:
            if not batch.done:
                for version, time in times.items():
                    batch.observe(VersionId(version), {"retrieved_at": time})


def _added(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tables and documents that the round of a database version added."""
    return [item for item in (*row["tables"], *row["documents"]) if item["added_in"] == row["round"]]


def refuse_round(batch: Batch, judgement: Judgement, key: str, number: int, *, round: int = 0) -> None:
    """Why complexification round `number` does not count; what it made, if anything, is not kept."""
    judged(batch, "complexify", "database", f"{key}/round-{number}", judgement, environment=key, round=round)
