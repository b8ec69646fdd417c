"""Mining: which themes have real data, decided by search, and their first databases (method.md 2)."""

from collections import Counter
from collections.abc import Sequence

import dagster as dg

from agent_world.codec import decode
from agent_world.discovery.builds import Seed, corpus, mine_theme
from agent_world.discovery.mining import environment_key
from agent_world.discovery.model import Mined, Rejected, Theme
from agent_world.identity import canonical_json, sha256
from agent_world.lake.batch import Batch
from agent_world.world import World, save_database
from assets.partitions import environments
from assets.resources import EngineResource, LakeResource, RunResource
from assets.stage import Job, derive, map_jobs, report
from assets.verdicts import verdict


@dg.asset(group_name="environments", kinds={"delta"}, deps=["themes"])
def mined(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, engine: EngineResource
) -> dg.MaterializeResult:
    """A first database for each theme that real data answers; the others are rejected with the evidence."""
    world, settings = lake.open(), run.settings
    source = sha256(canonical_json(dict(corpus().packages)))
    seeds = [
        Seed(version=row["version_id"], theme=decode(Theme, world.payload(row["version_id"])))
        for row in world.read("themes", where={"state": "created"})
    ]
    jobs = [
        Job(partition=environment_key(seed.theme), item=seed, derivation=derive(settings, [], [seed.version, source]))
        for seed in seeds
    ]
    failed = map_jobs(context, world, engine.engine, "mined", jobs, mine_theme, _save)
    chosen = choose(world, settings.environments)
    context.instance.add_dynamic_partitions(environments.name, chosen)
    verdicts = Counter(row["verdict"] for row in world.read("themes", columns=["verdict"]))
    made = [row["version_id"] for row in world.read("databases", where={"round": 0})]
    counts = {**verdicts, "chosen": chosen, "failed": failed, "themes": len(jobs)}
    return report(world, counts, made)


def _save(seed: Seed, found: Mined | Rejected, batch: Batch) -> None:
    theme = seed.version
    if isinstance(found, Rejected):
        verdict(batch, "match", "theme", theme, accepted=False, reason=found.reason, evidence=found.evidence)
        batch.observe(theme, {"verdict": "rejected", "match_score": _score(found)})
        return
    database = save_database(batch, found.database, found.files, [(theme, "theme")])
    verdict(batch, "match", "theme", theme, accepted=True, evidence=found.evidence)
    verdict(batch, "database", "database", database, accepted=True, environment=found.database.database_id)
    packages = sorted({table.source.package for table in found.database.tables if table.source})
    fields = {"verdict": "matched", "matched_source": ", ".join(packages), "match_score": _score(found)}
    batch.observe(theme, fields)


def _score(found: Mined | Rejected) -> float | None:
    """Of the data that was decided on, else of the best that search proposed."""
    judged = [found.evidence["decided_on"]] if isinstance(found, Mined) else found.evidence["candidates"]
    return judged[0]["score"] if judged else None


def choose(world: World, most: int) -> list[str]:
    """The matched themes that become environments: at most `most`, spread over sources and data packages.

    Each pick is the theme whose source and package were picked least so far, so that a small run still shows all three
    sources; ties go by key.
    """
    matched = sorted(
        (row for row in world.read("themes", where={"verdict": "matched", "state": "created"})),
        key=lambda row: row["artifact_id"],
    )
    picked: list[dict] = []
    while matched and len(picked) < most:
        best = min(matched, key=lambda row: (_uses(picked, "matched_source", row), _uses(picked, "source", row)))
        matched.remove(best)
        picked.append(best)
    return sorted(row["artifact_id"] for row in picked)


def _uses(picked: Sequence[dict], column: str, row: dict) -> int:
    return sum(other[column] == row[column] for other in picked)
