"""The code location: every stage, the resources, the checks, the automation.

AGENT_WORLD_LAKE names the lake. AGENT_WORLD_SETTINGS are the settings as JSON, which `agent-world ui` takes from the
lake's last run; without them AGENT_WORLD_PROFILE names a profile.
"""

import json
import os

import dagster as dg

from agent_world.codec import decode
from assets.settings import Settings, settings_for
from dagster_project.automation import targeted_by_diagnosis
from dagster_project.resources import resources_for
from dagster_project.stages import ASSETS


def settings() -> Settings:
    """The settings that the environment names."""
    text = os.environ.get("AGENT_WORLD_SETTINGS")
    return (
        decode(Settings, json.loads(text)) if text else settings_for(os.environ.get("AGENT_WORLD_PROFILE", "default"))
    )


defs = dg.Definitions(
    assets=ASSETS,
    sensors=[targeted_by_diagnosis],
    resources=resources_for(os.environ.get("AGENT_WORLD_LAKE", "lake"), settings()),
    executor=dg.in_process_executor,
)
