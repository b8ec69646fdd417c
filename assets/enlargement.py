"""Complexification that a diagnosis asked for: a richer database and a new version of its environment (method.md 7).

Everything made before stays pinned to the version that it was made over, which still resolves.
"""

from collections.abc import Sequence
from functools import partial

import dagster as dg

from agent_world.discovery.builds import Enlarged, Snapshot, enrich_more
from agent_world.discovery.model import Judgement
from agent_world.engine import Engine
from agent_world.identity import VersionId
from agent_world.lake.batch import Batch
from agent_world.world import World
from assets.databases import keep_times, refuse_round, save_round, snapshot_of
from assets.environments import accept, built
from assets.partitions import round_key
from assets.settings import Settings
from assets.stage import Job, derive, map_jobs
from assets.tasks import save_graph
from assets.tools import save_tools


def enlarge(
    context: dg.AssetExecutionContext, world: World, engine: Engine, settings: Settings, keys: Sequence[str], *,
    round: int, diagnosis: VersionId,
) -> list[str]:  # fmt: skip
    """Enrich the database of each environment once more and build the environment over it, through the same gates.

    Returns:
        Those of `keys` that have a new version; where nothing new was found or a gate said no, the old one goes on.
    """
    number = settings.complexification_rounds + round
    jobs = []
    for key in keys:
        snapshot = snapshot_of(world, key, through=number - 1)
        derivation = derive(settings, [], [snapshot.version, str(number), diagnosis])
        jobs.append(Job(partition=key, item=snapshot, derivation=derivation))
    work = partial(enrich_more, number=number, seed=settings.seed)
    save = partial(_save, number=number, round=round, diagnosis=diagnosis)
    map_jobs(context, world, engine, f"enrichment/{round_key(round)}", jobs, work, save)
    keep_times(world)
    richer = {row["environment"] for row in world.read("gate_verdicts", where={"gate": "environment", "round": round})}
    grown = []
    for key in (key for key in keys if key in richer):
        category = built(world, through=round - 1)[key]["category"]
        for version in accept(context, world, settings, key, round=round, category=category):
            save_graph(context, world, settings, world.environment(version))
            grown.append(key)
    return grown


def _save(
    snapshot: Snapshot, enlarged: Enlarged | Judgement, batch: Batch, *, number: int, round: int, diagnosis: VersionId
) -> None:
    if isinstance(enlarged, Judgement):
        refuse_round(batch, enlarged, snapshot.database.database_id, number, round=round)
        return
    made = enlarged.enriched
    roles = [(snapshot.version, "previous"), (snapshot.seed.version, "theme"), (diagnosis, "diagnosis")]
    richer = save_round(batch, made, roles, round=round)
    source = Snapshot(version=richer, database=made.database, files=made.files, seed=snapshot.seed)
    save_tools(source, enlarged.toolbox, batch, round=round)
