"""The taxonomy of themes: where the arena takes its strata from (method.md 4)."""

import dagster as dg

from agent_world.codec import decode, encode
from agent_world.discovery.model import Theme
from agent_world.discovery.taxonomy import Topic, build_taxonomy
from agent_world.identity import VersionId
from agent_world.lake.batch import Batch
from agent_world.world import World
from assets.resources import LakeResource, RunResource
from assets.stage import commit, derive, report


@dg.asset(group_name="tasks", kinds={"delta"}, deps=["environments"])
def taxonomy(context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource) -> dg.MaterializeResult:
    """Two levels over all themes, merged by three annotator passes; every environment gets its category."""
    world, settings = lake.open(), run.settings
    themes = [VersionId(row["version_id"]) for row in world.read("themes", where={"state": "created"})]
    environments = {row["theme"]: row for row in world.read("environments", where={"state": "created"})}
    derivation = derive(settings, [], [*themes, *(row["version_id"] for row in environments.values())])

    def fill(batch: Batch) -> None:
        found = build_taxonomy([_topic(world, theme) for theme in themes])
        batch.create("taxonomy", "taxonomy", encode(found), parents=[(theme, "theme") for theme in themes])
        for row in environments.values():
            batch.observe(row["version_id"], {"category": found.assignment[row["environment_id"]]})

    (version,) = commit(world, "taxonomy", "", derivation, context.run_id, fill).versions
    payload = world.payload(version)
    counts = {
        "clusters": len(payload["clusters"]),
        "categories": len(payload["categories"]),
        "agreement": payload["agreement"],
        "categories_with_environments": len(
            {payload["assignment"][r["environment_id"]] for r in environments.values()}
        ),
    }
    return report(world, counts, [version])


def _topic(world: World, version: VersionId) -> Topic:
    theme = decode(Theme, world.payload(version))
    words = [theme.title, theme.description, *(str(tool.get("name", "")) for tool in theme.tools)]
    return Topic(key=version.rpartition("@")[0], text=" ".join(words), nouns=theme.nouns)
