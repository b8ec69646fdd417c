"""A whole state in memory that any number of sessions may read and none can write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_world.sandbox.memory import MemoryFile


@dataclass(frozen=True, slots=True)
class SealedState:
    """`main` holds the records or the JSON object, the index offset and size of each document in `documents`."""

    state_format: str
    main: MemoryFile
    documents: MemoryFile
    documents_index: Mapping[str, tuple[int, int]]

    def descriptors(self) -> tuple[int, int]:
        """What a session gets, in the order in which its guest takes it (sandbox/guest/verifying.py)."""
        return self.main.fd, self.documents.fd
