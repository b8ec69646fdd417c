"""A lake: versioned artifacts, facts about them, blobs and lineage behind one object, opened by URI."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_world.identity import canonical_json
from agent_world.lake import rows
from agent_world.lake.batch import Batch
from agent_world.lake.blobs import BlobReader
from agent_world.lake.code import code_version as this_code
from agent_world.lake.errors import LakeFromNewerVersionError, NotALakeError
from agent_world.lake.log import EventLog
from agent_world.lake.storage import Storage, open_storage
from agent_world.lake.tables import Index, Tables
from agent_world.lake.view import View

MARKER = "lake.json"
FORMAT = 1


def open_lake(uri: str | Path, *, create: bool = True) -> Lake:
    """Open the lake at a directory or ``s3://bucket/prefix``; make an empty one there with `create`.

    Raises:
        NotALakeError: something else is there, or nothing and `create` is off.
        LakeFromNewerVersionError: the lake was written by a newer version of this code.
    """
    storage = open_storage(uri)
    _claim(storage, create)
    return Lake(storage)


class Lake(View):
    """Read with `read`, `sql`, `payload`, `files`; write with `begin`."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        log = EventLog(storage)
        log.create()
        blobs = BlobReader(storage, Index(lambda: self.tables.table("blobs"), "sha256"))
        super().__init__(log, blobs, Tables(log, blobs.read, lambda name: None))

    @property
    def uri(self) -> str:
        """Where the lake is."""
        return self.storage.uri

    def events_version(self) -> int:
        """The version of the events table: moves with every commit."""
        return self.log.version()

    def begin(
        self, stage: str, partition: str = "", *, derivation: str, run_id: str | None = None,
        code_version: str | None = None,
    ) -> Batch:  # fmt: skip
        """Begin the batch (stage, partition, derivation); see `Batch`."""
        return Batch(self, stage, partition, derivation, run_id, code_version or this_code())

    def read(
        self, table: str, *, where: rows.Where | None = None, columns: Sequence[str] | None = None, at: Any = None
    ) -> list[dict[str, Any]]:
        """Rows of a table in commit order, JSON columns decoded; `at` is a snapshot or a point in time.

        Raises:
            NotFoundError: no such table, column or point in time.
        """
        return self.at(at).rows(table, where=where, columns=columns)

    def commit(self, batch: Batch) -> None:
        """Commit a batch; called when its ``with`` block is left."""
        if batch.done:
            return
        batch.flush()
        now = datetime.now(UTC)
        batch.commit = self.log.append([batch.id], lambda version: batch.events(version, now))

    def at(self, at: Any) -> View:
        """This lake as it stood at a snapshot or a point in time."""
        return self


def _claim(storage: Storage, create: bool) -> None:
    """See that `storage` holds a lake that this code can read, or make it one."""
    try:
        marker = storage.read(MARKER)
    except FileNotFoundError:
        found = next(iter(storage.list()), None)
        if found is not None:
            raise NotALakeError(storage.uri, f"it has no {MARKER} but holds {found.key}") from None
        if not create:
            raise NotALakeError(storage.uri, "there is nothing") from None
        storage.write_new(MARKER, canonical_json({"lake": "agent-world", "format": FORMAT}).encode())
        return
    try:
        found_format = int(json.loads(marker)["format"])
    except (ValueError, TypeError, KeyError) as error:
        raise NotALakeError(storage.uri, f"its {MARKER} cannot be read") from error
    if found_format > FORMAT:
        raise LakeFromNewerVersionError(storage.uri, found_format, FORMAT)
