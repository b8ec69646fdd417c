"""Where the services beside a lake keep their files on this machine: never part of the lake's truth."""

from __future__ import annotations

import os
from pathlib import Path

from agent_world.identity import sha256


def service_home(lake_uri: str) -> Path:
    """The folder for Dagster's and MLflow's databases, training output and caches of one lake.

    Beside a directory lake (``<lake>.services``), so that it goes where the lake goes; for a lake in object storage
    below the user's data folder.
    """
    if "://" in lake_uri:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
        home = base / "agent-world" / sha256(lake_uri)[:16]
    else:
        place = Path(lake_uri).resolve()
        home = place.with_name(place.name + ".services")
    home.mkdir(parents=True, exist_ok=True)
    return home


def cache_folder() -> Path:
    """The user's cache folder: what is costly to make and can always be made again (the corpus)."""
    base = Path(os.environ.get("AGENT_WORLD_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "agent-world"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
