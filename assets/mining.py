"""Mining: which themes have real data, decided by search, and their first databases (method.md 2)."""

from collections import Counter
from collections.abc import Sequence

import dagster as dg

from agent_world.codec import decode
from agent_world.discovery.builds import Seed, corpus, mine_theme
from agent_world.discovery.mining import environment_key
from agent_world.discovery.model import Judgement, Mined, Quarantined, Rejected, Theme
from agent_world.lake.batch import Batch
from agent_world.world import World, save_database
from assets.databases import keep_times
from assets.partitions import environments
from assets.progress import console
from assets.resources import EngineResource, LakeResource, RunResource
from assets.settings import Settings
from assets.stage import Job, commit, derive, map_jobs, report
from assets.verdicts import judged, quarantine

_SHOWN = 5
"""Faults of the sources that a run tells one by one."""


@dg.asset(group_name="environments", kinds={"delta"}, deps=["themes"])
def mined(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, engine: EngineResource
) -> dg.MaterializeResult:
    """A first database for each theme that real data answers; the others are rejected with the evidence."""
    world, settings = lake.open(), run.settings
    keep_faults(context, world, settings, corpus().faults)
    source = corpus().digest
    seeds = [
        Seed(version=row["version_id"], theme=decode(Theme, world.payload(row["version_id"])))
        for row in world.read("themes", where={"state": "created"})
    ]
    jobs = [
        Job(partition=environment_key(seed.theme), item=seed, derivation=derive(settings, [], [seed.version, source]))
        for seed in seeds
    ]
    failed = map_jobs(context, world, engine.engine, "mined", jobs, mine_theme, _save)
    keep_times(world)
    chosen = choose(world, settings.environments)
    context.instance.add_dynamic_partitions(environments.name, chosen)
    verdicts = Counter(row["verdict"] for row in world.read("themes", columns=["verdict"]))
    made = [row["version_id"] for row in world.read("databases", where={"round": 0})]
    counts = {**verdicts, "chosen": chosen, "failed": failed, "themes": len(jobs)}
    return report(world, counts, made)


def keep_faults(
    context: dg.AssetExecutionContext, world: World, settings: Settings, faults: Sequence[Quarantined]
) -> None:
    """Put what could not be read of the sources into `quarantine`, each fault once, and tell the user."""
    faults = sorted(faults, key=lambda fault: (fault.reason != "package_unreadable", fault.item, fault.detail))
    lines = [f"{fault.item}: {fault.detail}" for fault in faults]

    def fill(batch: Batch) -> None:
        rows = world.read("quarantine", where={"stage": "corpus"}, columns=["item", "detail"])
        known = {(row["item"], row["detail"]) for row in rows}
        for fault in faults:
            if (fault.item, fault.detail) not in known:
                quarantine(batch, fault)

    commit(context, world, "corpus", "", derive(settings, [], lines), fill)
    for line in lines[:_SHOWN]:
        console.print(f"  {'mined':<14} {line}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    if len(lines) > _SHOWN:
        console.print(
            f"  {'mined':<14} {len(lines) - _SHOWN} more of {len(lines)} faults: "
            "agent-world sql \"SELECT item, detail FROM quarantine WHERE stage = 'corpus'\"",
            style="yellow", highlight=False, soft_wrap=True,
        )  # fmt: skip


def _save(seed: Seed, found: Mined | Rejected, batch: Batch) -> None:
    theme = seed.version
    judged(batch, "match", "theme", theme, found.match)
    if isinstance(found, Rejected):
        if found.judgement:
            judged(batch, "database", "theme", theme, found.judgement)
        batch.observe(theme, {"verdict": "rejected", "match_score": _score(found.match)})
        return
    key = found.database.database_id
    database = save_database(batch, found.database, found.files, [(theme, "theme")])
    judged(batch, "database", "database", database, found.judgement, environment=key)
    packages = sorted({table.source.package for table in found.database.tables if table.source})
    fields = {"verdict": "matched", "matched_source": ", ".join(packages), "match_score": _score(found.match)}
    batch.observe(theme, fields)


def _score(match: Judgement) -> float | None:
    """Of the data that was decided on, else of the best that search proposed."""
    seen = [match.evidence["decided_on"]] if match.accepted else match.evidence["candidates"]
    return seen[0]["score"] if seen else None


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
