"""Where servers take their tasks from: a lake, or a list."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, get_args

from agent_world.errors import AgentWorldError
from agent_world.identity import VersionId, artifact_id_of
from agent_world.lake.errors import NotFoundError
from agent_world.tasks.model import Purpose, Tier

if TYPE_CHECKING:
    from agent_world.world import BoundTask, World

_KEPT = 4096
_NAMED = 5
_COLUMNS = ("version_id", "environments", "instruction", "tier", "purpose", "round")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """One task as it is listed: what an agent may know, and what it is meant for.

    `task` and `environment` are exact versions. `tier` is null for a task that no gate has seen.
    """

    task: VersionId
    environment: VersionId
    instruction: str
    tier: Tier | None = None
    purpose: Purpose = "general"
    round: int = 0


class AmbiguousTaskError(AgentWorldError):
    """`ref` could mean each of these `versions`."""

    def __init__(self, ref: str, versions: Sequence[VersionId]) -> None:
        super().__init__(ref, tuple(versions))
        self.ref, self.versions = ref, tuple(versions)

    def __str__(self) -> str:
        more = "" if len(self.versions) <= _NAMED else f" and {len(self.versions) - _NAMED} more"
        return f"the task {self.ref!r} could be {', '.join(self.versions[:_NAMED])}{more}; name one of these versions"


class TaskSource(Protocol):
    """The tasks that clients may attempt. Both methods are called from several threads."""

    def entries(self) -> Sequence[TaskEntry]:
        """All of them, sorted by version."""
        ...

    def task(self, ref: str) -> BoundTask:
        """The one whose version or key is `ref` or starts so.

        Raises:
            NotFoundError: none, or it may not be attempted.
            AmbiguousTaskError: several, and none of them is the current one.
        """
        ...


class GivenTasks:
    """Tasks that the caller gives."""

    def __init__(self, tasks: Collection[BoundTask]) -> None:
        self._tasks = {bound.version: bound for bound in sorted(tasks, key=lambda bound: bound.version)}

    def entries(self) -> Sequence[TaskEntry]:
        """All of them, sorted by version."""
        return [
            TaskEntry(
                task=version,
                environment=bound.environment.version,
                instruction=bound.task.instruction,
                purpose=bound.task.purpose,
                round=bound.task.round,
            )
            for version, bound in self._tasks.items()
        ]

    def task(self, ref: str) -> BoundTask:
        """The one whose version or key is `ref` or starts so. Of two versions none is taken to be meant.

        Raises:
            NotFoundError: none.
            AmbiguousTaskError: several.
        """
        named = [version for version in self._tasks if ref in (version, artifact_id_of(version))]
        found = named or [version for version in self._tasks if ref and version.startswith(ref)]
        if not found:
            raise NotFoundError("task", ref)
        if len(found) > 1:
            raise AmbiguousTaskError(ref, found)
        return self._tasks[found[0]]


class LakeTasks:
    """The accepted tasks of a lake, of all environments or of those with these keys.

    The list is what the lake held when it was first asked for; `task` finds later ones as well, and keeps to the
    version that it once gave for a name.
    """

    def __init__(self, world: World, environments: Collection[str] | None = None) -> None:
        self._world, self._environments = world, None if environments is None else frozenset(environments)
        self._lock = threading.Lock()
        self._entries: list[TaskEntry] | None = None
        self._found = lru_cache(_KEPT)(self._find)

    def entries(self) -> Sequence[TaskEntry]:
        """All of them, sorted by version."""
        with self._lock:
            if self._entries is None:
                self._entries = sorted(self._read({}), key=lambda entry: entry.task)
            return self._entries

    def task(self, ref: str) -> BoundTask:
        """The one whose version or key is `ref` or starts so; of a key, the current version.

        Raises:
            NotFoundError: none or several, or it was not accepted, or it is of another environment.
        """
        with self._lock:  # one at a time: an environment that two look for is loaded once
            return self._found(ref)

    def _find(self, ref: str) -> BoundTask:
        version = self._world.resolve("task", ref)
        if not self._read({"version_id": version}):
            raise NotFoundError("task", ref)
        return self._world.task(version)

    def _read(self, where: Mapping[str, str]) -> list[TaskEntry]:
        accepted = {**where, "state": "created", "accepted": True, "tier": list(get_args(Tier))}
        entries = [
            TaskEntry(
                task=row["version_id"],
                environment=row["environments"][0],
                instruction=row["instruction"],
                tier=row["tier"],
                purpose=row["purpose"],
                round=row["round"],
            )
            for row in self._world.read("tasks", where=accepted, columns=_COLUMNS)
        ]
        wanted = self._environments
        return [entry for entry in entries if wanted is None or artifact_id_of(entry.environment) in wanted]
