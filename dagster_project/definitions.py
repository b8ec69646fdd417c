"""The code location: every stage, the resources of the lake named by AGENT_WORLD_LAKE, the checks."""

import os

import dagster as dg

from dagster_project.resources import resources_for
from dagster_project.stages import ASSETS

defs = dg.Definitions(
    assets=ASSETS,
    resources=resources_for(
        os.environ.get("AGENT_WORLD_LAKE", "lake"), os.environ.get("AGENT_WORLD_PROFILE", "default")
    ),
    executor=dg.in_process_executor,
)
