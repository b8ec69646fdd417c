"""The taxonomy of themes: where the arena takes its strata from (method.md 4)."""

import dagster as dg

from agent_world.codec import decode, encode
from agent_world.discovery.builds import corpus
from agent_world.discovery.model import Theme
from agent_world.discovery.taxonomy import Taxonomy, build_taxonomy, figure
from agent_world.discovery.topics import topic_of
from agent_world.identity import VersionId
from agent_world.lake.batch import Batch
from assets.environments import built
from assets.resources import LakeResource, RunResource
from assets.stage import commit, derive, report


@dg.asset(group_name="tasks", kinds={"delta"}, deps=["environments"])
def taxonomy(context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource) -> dg.MaterializeResult:
    """Two levels over all themes, merged by three annotator passes; every environment gets its category."""
    world, settings = lake.open(), run.settings
    themes = [VersionId(row["version_id"]) for row in world.read("themes", where={"state": "created"})]
    environments = {row["theme"]: row for row in built(world, through=0).values()}
    derivation = derive(settings, [], [*themes, *(row["version_id"] for row in environments.values())])

    def fill(batch: Batch) -> None:
        topics = [topic_of(decode(Theme, world.payload(theme))) for theme in themes]
        found = build_taxonomy(topics, space=corpus().space)
        batch.create("taxonomy", "taxonomy", encode(found), parents=[(theme, "theme") for theme in themes])
        for row in environments.values():
            batch.observe(row["version_id"], {"category": found.assignment[row["environment_id"]]})

    (version,) = commit(context, world, "taxonomy", "", derivation, fill).versions
    found = decode(Taxonomy, world.payload(version))
    counts = {
        "clusters": len(found.clusters),
        "categories": len(found.categories),
        "agreement": found.agreement,
        "categories_with_environments": len({found.assignment[key] for key in built(world, through=0)}),
    }
    return report(world, counts, [version], plots={"themes": figure(found)})
