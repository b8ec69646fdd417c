"""The stages of Agent-World as thin Dagster assets: read, call the domain, write through the lake, report."""

import warnings

from dagster._utils.warnings import BetaWarning, PreviewWarning

# Partition ranges in one run are beta in Dagster; its warning at every asset says nothing to who runs the loop.
warnings.filterwarnings("ignore", category=BetaWarning)
warnings.filterwarnings("ignore", category=PreviewWarning)
