"""Resources by lake and settings: the same for the command line and for Dagster's page."""

import dagster as dg

from agent_world.codec import encode
from agent_world.identity import canonical_json
from assets.resources import EngineResource, LakeResource, RunResource, TrackerResource
from assets.settings import Settings
from dagster_project.cli.common import engine_place


def resources_for(lake: str, settings: Settings) -> dict[str, dg.ConfigurableResource]:
    """The resources that assets name: `lake`, `run`, `engine`, `tracker`."""
    text = canonical_json(encode(settings))
    return {
        "lake": LakeResource(uri=lake),
        "run": RunResource(settings_json=text),
        "engine": EngineResource(workers=settings.threads, where=engine_place()),
        "tracker": TrackerResource(lake_uri=lake, settings_json=text),
    }
