"""Themes: real MCP servers, tool documentation and product requirement documents (method.md 1)."""

from collections import Counter

import dagster as dg

from agent_world.codec import encode
from agent_world.discovery.builds import corpus
from agent_world.discovery.mining import environment_key
from agent_world.discovery.themes.selection import collect_themes
from agent_world.lake.batch import Batch
from assets.checks import check_specs, prove_all
from assets.resources import LakeResource, RunResource
from assets.stage import commit, derive, report
from assets.verdicts import quarantine, verdict


@dg.asset(group_name="environments", kinds={"delta"}, check_specs=check_specs("themes", "themes"))
def themes(context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource) -> dg.MaterializeResult:
    """Seed topics from MCP servers, API documentation and PRDs: parsed, schema-checked, de-duplicated."""
    world, settings = lake.open(), run.settings

    def fill(batch: Batch) -> None:
        found = collect_themes(settings.seed, settings.themes, corpus=corpus())
        for theme in found.themes:
            version = batch.create("theme", environment_key(theme), encode(theme))
            verdict(batch, "theme", "theme", version, accepted=True, evidence={"tools": len(theme.tools)})
        for item in found.rejected:
            seen = {"why": item.detail}
            verdict(batch, "theme", "theme", item.item, accepted=False, reason=item.reason, evidence=seen)
        for item in found.quarantined:
            quarantine(batch, item)

    batch = commit(context, world, "themes", "", derive(settings, ["themes"], []), fill)
    rows = world.read("themes", columns=["version_id", "source"])
    counts = dict(sorted(Counter(row["source"] for row in rows).items()))
    return report(world, {"themes": len(rows), **counts}, batch.versions, prove_all(world, "themes"))
