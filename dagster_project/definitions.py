"""The code location: every stage, the resources of the lake named by AGENT_WORLD_LAKE, the checks."""

import os
import warnings

import dagster as dg
from dagster._utils.warnings import BetaWarning, PreviewWarning

warnings.filterwarnings("ignore", category=BetaWarning)
warnings.filterwarnings("ignore", category=PreviewWarning)

from dagster_project.resources import resources_for  # noqa: E402
from dagster_project.stages import ASSETS  # noqa: E402

defs = dg.Definitions(
    assets=ASSETS,
    resources=resources_for(
        os.environ.get("AGENT_WORLD_LAKE", "lake"), os.environ.get("AGENT_WORLD_PROFILE", "default")
    ),
    executor=dg.in_process_executor,
)
