"""The event-sourced lake: one append-only truth, everything else folded from it (design.md 4)."""

from __future__ import annotations

from agent_world.lake.batch import Batch
from agent_world.lake.errors import (
    BadRowError,
    CommitError,
    DamagedError,
    DiskFullError,
    LakeBusyError,
    LakeError,
    LakeFromNewerVersionError,
    NotALakeError,
    NotFoundError,
    QueryError,
    StoreError,
    StoreFailedError,
    UnsafeStoreError,
)
from agent_world.lake.lake import Lake, open_lake
from agent_world.lake.view import View

__all__ = [
    "BadRowError",
    "Batch",
    "CommitError",
    "DamagedError",
    "DiskFullError",
    "Lake",
    "LakeBusyError",
    "LakeError",
    "LakeFromNewerVersionError",
    "NotALakeError",
    "NotFoundError",
    "QueryError",
    "StoreError",
    "StoreFailedError",
    "UnsafeStoreError",
    "View",
    "open_lake",
]
