"""Complexification that a diagnosis asked for: a richer database and a new version of its environment (method.md 7).

Everything made before stays pinned to the version that it was made over, which still resolves.
"""

from collections.abc import Sequence
from functools import partial

import dagster as dg

from agent_world.discovery.builds import Enlarged, Snapshot, enrich_more
from agent_world.engine import Engine
from agent_world.lake.batch import Batch
from agent_world.world import World, save_database
from assets.databases import snapshot_of
from assets.environments import accept, built
from assets.settings import Settings
from assets.stage import Job, commit, derive, map_jobs
from assets.tasks import save_graph
from assets.tools import save_tools
from assets.verdicts import verdict


def enlarge(
    context: dg.AssetExecutionContext, world: World, engine: Engine, settings: Settings, keys: Sequence[str], *,
    round: int,
) -> list[str]:  # fmt: skip
    """Enrich the database of each environment once more and build the environment over it, through the same gates.

    Returns:
        Those of `keys` that have a new version; where nothing new was found or a gate said no, the old one goes on.
    """
    number = settings.complexification_rounds + round
    jobs = []
    for key in keys:
        snapshot = snapshot_of(world, key, through=number - 1)
        jobs.append(Job(partition=key, item=snapshot, derivation=derive(settings, [], [snapshot.version, str(number)])))
    work = partial(enrich_more, number=number, seed=settings.seed)
    map_jobs(context, world, engine, f"enrichment/r{round:02d}", jobs, work, partial(_save, round=round))
    richer = {row["environment"] for row in world.read("gate_verdicts", where={"gate": "environment", "round": round})}
    grown = []
    for key in (key for key in keys if key in richer):
        category = built(world, through=round - 1)[key]["category"]
        for version in accept(context, world, settings, key, round=round):
            _keep_category(context, world, settings, version, category)
            save_graph(context, world, settings, world.environment(version))
            grown.append(key)
    return grown


def _keep_category(
    context: dg.AssetExecutionContext, world: World, settings: Settings, version: str, category: str
) -> None:
    """A new version stays in the category of its theme."""

    def fill(batch: Batch) -> None:
        batch.observe(version, {"category": category})

    commit(context, world, "category", version, derive(settings, [], [version, category]), fill)


def _save(snapshot: Snapshot, enlarged: Enlarged | None, batch: Batch, *, round: int) -> None:
    key = snapshot.database.database_id
    if enlarged is None:
        verdict(
            batch, "complexify", "database", snapshot.version, environment=key, accepted=False, reason="nothing_new",
            round=round,
        )  # fmt: skip
        return
    made = enlarged.enriched
    roles = [(snapshot.version, "previous"), (snapshot.seed.version, "theme")]
    richer = save_database(batch, made.database, made.files, roles)
    verdict(batch, "complexify", "database", richer, environment=key, accepted=True, round=round)
    source = Snapshot(version=richer, database=made.database, files=made.files, seed=snapshot.seed)
    save_tools(source, enlarged.toolbox, batch, round=round)
