"""What assets are given: the lake, the settings of the run, the workers, the tracker, the training runner."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import dagster as dg
from pydantic import PrivateAttr

from agent_world import world
from agent_world.codec import decode, encode
from agent_world.engine import Engine, open_engine
from agent_world.home import artifact_root, service_home
from agent_world.identity import canonical_json, sha256
from agent_world.stores import tracking_store
from assets.settings import Settings
from assets.tracking import Tracker


class LakeResource(dg.ConfigurableResource):
    """One lake, by URI; opened once in a process."""

    uri: str
    _world: world.World | None = PrivateAttr(default=None)

    def open(self) -> world.World:
        """The lake; an empty one is made at `uri` when nothing is there."""
        if self._world is None:
            self._world = world.open(self.uri, create=True)
        return self._world


class RunResource(dg.ConfigurableResource):
    """The settings of the run as JSON text, so that Dagster's page shows and accepts them."""

    settings_json: str

    @classmethod
    def of(cls, settings: Settings) -> "RunResource":
        """The resource that carries `settings`."""
        return cls(settings_json=canonical_json(encode(settings)))

    @cached_property
    def settings(self) -> Settings:
        """The settings, checked."""
        return decode(Settings, json.loads(self.settings_json))


_PRELOAD = ("agent_world.world", "assets.playing", "agent_world.models.libraries")
_shared: list[Engine] = []


@contextmanager
def shared_workers(count: int, where: str = "local") -> Iterator[None]:
    """Give every run of this process the same workers, rather than new ones that import everything again."""
    with open_engine(where, count, _PRELOAD) as engine:
        _shared.append(engine)
        try:
            yield
        finally:
            _shared.remove(engine)


class EngineResource(dg.ConfigurableResource):
    """A pool of worker processes: that of `shared_workers` around the run, else one that lives as long as the run."""

    workers: int = 0
    where: str = "local"
    _engine: Engine | None = PrivateAttr(default=None)

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Dagster's hook after the last step: workers of this run end."""
        if self._engine is not None:
            self._engine.__exit__()
            self._engine = None

    @property
    def engine(self) -> Engine:
        """The pool."""
        if _shared:
            return _shared[-1]
        if self._engine is None:
            self._engine = open_engine(self.where, self.workers or None)
        return self._engine


class TrackerResource(dg.ConfigurableResource):
    """MLflow, its database `tracking_store`, its artifacts beside the lake; or a server named by `uri`."""

    lake_uri: str
    settings_json: str
    uri: str = ""

    def open(self) -> Tracker:
        """The tracker of this loop: the same lake and settings find the same runs again."""
        uri = self.uri or tracking_store(self.lake_uri)  # not before: Dagster shows a resource's fields
        loop = sha256(str(service_home(self.lake_uri)) + self.settings_json)
        return Tracker(uri, artifact_root(self.lake_uri), loop)


def work_folder(lake_uri: str, name: str) -> Path:
    """A folder of this machine for transient files of one stage."""
    folder = service_home(lake_uri) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
