"""Resources by lake and profile: the same for the command line and for Dagster's page."""

import dagster as dg

from agent_world.codec import encode
from agent_world.identity import canonical_json
from assets.resources import EngineResource, LakeResource, RunResource, TrackerResource
from assets.settings import Settings, settings_for


def resources_for(lake: str, run: Settings | str) -> dict[str, dg.ConfigurableResource]:
    """The resources that assets name: `lake`, `run`, `engine`, `tracker`."""
    settings = settings_for(run) if isinstance(run, str) else run
    text = canonical_json(encode(settings))
    return {
        "lake": LakeResource(uri=lake),
        "run": RunResource(settings_json=text),
        "engine": EngineResource(workers=settings.threads),
        "tracker": TrackerResource(lake_uri=lake, settings_json=text),
    }
