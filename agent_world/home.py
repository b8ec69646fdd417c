"""Where the services beside a lake keep their files on this machine: never part of the lake's truth."""

from __future__ import annotations

import os
from pathlib import Path

from agent_world.identity import sha256


def service_home(lake_uri: str) -> Path:
    """The folder for Dagster's and MLflow's databases, training output and caches of one lake.

    Beside a directory lake (``<lake>.services``), so that it goes where the lake goes; for a lake in object storage
    below the user's data folder. MLflow's artifacts are at `artifact_root`.
    """
    place = _place(lake_uri)
    if "://" in place:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
        home = base / "agent-world" / sha256(place)[:16]
    else:
        folder = Path(place).resolve()
        home = folder.with_name(folder.name + ".services")
    home.mkdir(parents=True, exist_ok=True)
    return home


def artifact_root(lake_uri: str) -> str:
    """Where MLflow keeps artifacts: for a lake in object storage a prefix beside it in the same bucket."""
    place = _place(lake_uri)
    if "://" not in place:
        return (service_home(place) / "mlflow-artifacts").as_uri()
    return f"{place}.mlflow" if "/" in place.partition("://")[2] else f"{place}/.mlflow"


def cache_folder() -> Path:
    """The user's cache folder: what is costly to make and can always be made again (the corpus)."""
    base = Path(os.environ.get("AGENT_WORLD_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "agent-world"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _place(lake_uri: str) -> str:
    """A lake's own word for where it is: an address may be typed in more ways than one."""
    from agent_world.lake.storage import open_storage

    return open_storage(lake_uri).uri if "://" in lake_uri else lake_uri
