"""How the state of an environment is laid for a session and read back: one object for each runtime and state format.

Ours is Python functions over SQLite and files. A Python class over one JSON object is for environments made elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from agent_world.environments import json_state, snapshot, state
from agent_world.environments.errors import UnusableEnvironmentError
from agent_world.environments.model import Environment, Json
from agent_world.environments.state import EnvironmentState


class Format(ABC):
    """One runtime over one state format; the guest has its counterpart (sandbox/guest/tools.py).

    `logs` is how many logs a session writes. A snapshot is what `snapshot` gives, and only the format itself knows it.
    """

    runtime: str
    state_format: str
    logs: int

    @abstractmethod
    def snapshot(self, files: Mapping[str, bytes]) -> Any:
        """What is worth knowing of these files only once; the same one for the same bytes, while it is kept."""

    @abstractmethod
    def initial(self, files: Mapping[str, bytes]) -> EnvironmentState:
        """The state that these files are."""

    @abstractmethod
    def descriptors(self, snapshot: Any, logs: Sequence[int]) -> list[int]:
        """What a session gets, in the order in which its guest takes it."""

    @abstractmethod
    def read(self, snapshot: Any, logs: Sequence[bytes]) -> EnvironmentState:
        """The state that a session over `snapshot` left in its logs.

        Raises:
            CorruptStateError: its code broke it.
        """

    def setup(self, snapshot: Any, seed: int) -> dict[str, Json]:
        """What the guest is told first."""
        return {"kind": self.runtime, "seed": seed}


class FunctionsOverSqlite(Format):
    """Python functions over SQLite and files: a log of pages and one of documents."""

    runtime, state_format, logs = "python-function", "sqlite+files", 2

    def snapshot(self, files: Mapping[str, bytes]) -> snapshot.Snapshot:
        """See `Format`."""
        return snapshot.snapshot_of(files)

    def initial(self, files: Mapping[str, bytes]) -> state.State:
        """See `Format`."""
        return state.State(files)

    def descriptors(self, snapshot: snapshot.Snapshot, logs: Sequence[int]) -> list[int]:
        """See `Format`."""
        return [snapshot.database_memory.fd, logs[0], snapshot.documents_memory.fd, logs[1]]

    def read(self, snapshot: snapshot.Snapshot, logs: Sequence[bytes]) -> state.State:
        """See `Format`."""
        return state.read_state(snapshot, *logs)

    def setup(self, snapshot: snapshot.Snapshot, seed: int) -> dict[str, Json]:
        """See `Format`."""
        return {**super().setup(snapshot, seed), "documents": snapshot.documents_index}


class ClassOverJson(Format):
    """A Python class over one JSON object: a log of its entries."""

    runtime, state_format, logs = "python-class", "json", 1

    def snapshot(self, files: Mapping[str, bytes]) -> json_state.JsonSnapshot:
        """See `Format`."""
        return json_state.snapshot_of(files)

    def initial(self, files: Mapping[str, bytes]) -> json_state.JsonState:
        """See `Format`."""
        return json_state.json_state(files)

    def descriptors(self, snapshot: json_state.JsonSnapshot, logs: Sequence[int]) -> list[int]:
        """See `Format`."""
        return [snapshot.memory.fd, *logs]

    def read(self, snapshot: json_state.JsonSnapshot, logs: Sequence[bytes]) -> json_state.JsonState:
        """See `Format`."""
        return json_state.read_json_state(snapshot, *logs)


FORMATS = (FunctionsOverSqlite(), ClassOverJson())
_BY_NAMES: Mapping[tuple[str, str], Format] = {(each.runtime, each.state_format): each for each in FORMATS}


def format_of(environment: Environment) -> Format:
    """The format of an environment.

    Raises:
        UnusableEnvironmentError: nothing here opens its runtime over its state format.
    """
    found = _BY_NAMES.get((environment.runtime, environment.state_format))
    if found is None:
        known = ", ".join(f"{each.runtime} over {each.state_format}" for each in FORMATS)
        why = f"runtime {environment.runtime} over {environment.state_format} is unknown here; known: {known}"
        raise UnusableEnvironmentError(environment.version, why)
    return found


def initial_state(environment: Environment) -> EnvironmentState:
    """The state that every session of an environment starts from.

    Raises:
        UnusableEnvironmentError: as `format_of`.
    """
    return format_of(environment).initial(environment.files)
