"""A lake: versioned artifacts, facts about them, blobs and lineage behind one object, opened by URI."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake.exceptions import DeltaError

from agent_world.identity import artifact_id_of, canonical_json, sha256
from agent_world.lake import rows
from agent_world.lake.batch import Batch
from agent_world.lake.blobs import BlobReader
from agent_world.lake.code import code_version as this_code
from agent_world.lake.errors import (
    DivergedError,
    LakeBusyError,
    LakeError,
    LakeFromNewerVersionError,
    NotALakeError,
)
from agent_world.lake.log import Commit, EventLog
from agent_world.lake.moments import At, moment
from agent_world.lake.projections import Projections
from agent_world.lake.sql import run as run_sql
from agent_world.lake.storage import Storage, open_storage
from agent_world.lake.tables import Index, Tables
from agent_world.lake.view import View
from lake_schemas import TABLES

if TYPE_CHECKING:
    from agent_world.lake.kept_graph import KeptGraph
    from agent_world.lake.live_graph import LiveGraph

MARKER = "lake.json"
FORMAT = 1
MARK = canonical_json({"lake": "agent-world", "format": FORMAT}).encode()
"""What `MARKER` holds."""

IN_FLIGHT = "in-flight"
"""The lock that batches share and that gc must have alone."""

_GC_WAITS = 60
_GC_WAIT_S = 1.0
_REFRESH_AT = 32  # commits that readers may have to fold before the projections are stored again
_KEPT_VIEWS = 4

_log = logging.getLogger(__name__)


def open_lake(uri: str | Path, *, create: bool = True) -> Lake:
    """Open the lake at a directory or ``s3://bucket/prefix``; make an empty one there with `create`.

    Raises:
        NotALakeError: something else is there, or nothing and `create` is off.
        LakeFromNewerVersionError: the lake was written by a newer version of this code.
        UnsafeStoreError: the store lets two writers at once both win. StoreError: it cannot be reached.
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
        self.projections = Projections(storage)
        self._stored_through = -1
        self._views: dict[str, View] = {}
        super().__init__(log, blobs, Tables(log, blobs.read, self.projections.base))

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
        self, table: str, *, where: rows.Where | None = None, columns: Sequence[str] | None = None, at: At | None = None
    ) -> list[dict[str, Any]]:
        """Rows of a table in commit order, JSON columns decoded; `at` is a snapshot or a point in time.

        Raises:
            NotFoundError: no such table, column or point in time.
        """
        return self.at(at).rows(table, where=where, columns=columns)

    def at(self, at: At | None) -> View:
        """This lake as it stood at a snapshot (id or unique start of one), a point in time, or an `events` version.

        Raises:
            NotFoundError: there is no such point.
        """
        if at is None:
            return self
        key, source = moment(self, at)
        if key not in self._views:
            if len(self._views) >= _KEPT_VIEWS:
                self._views.pop(next(iter(self._views)))
            self._views[key] = View(self.log, self.blobs, Tables(source, self.blobs.read, lambda name: None))
        return self._views[key]

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """Keep gc away.

        Raises:
            LakeBusyError: gc is at work and did not end within a minute.
        """
        for attempt in range(_GC_WAITS):
            with self.storage.shared(IN_FLIGHT) as held:
                if held:
                    yield
                    return
            time.sleep(_GC_WAIT_S * (attempt + 1 < _GC_WAITS))
        raise LakeBusyError(self.uri, "gc is at work")

    def sql(self, query: str, *, at: At | None = None) -> pa.Table:
        """The answer to a DuckDB query; every table and `events` is a view.

        Raises:
            QueryError: the query was refused. NotFoundError: there is no such point in time.
        """
        return run_sql(query, self.at(at))

    def commit(self, batch: Batch) -> None:
        """Commit a batch; called when its ``with`` block is left.

        Raises:
            DivergedError: this batch is in the lake already, with other content.
        """
        if batch.done:
            self._note_reuse(batch)
            self._compare(batch)
            return
        batch.finish()
        batch.commit = self._append(batch, since=batch.begun)
        if not batch.commit.fresh:
            self._compare(batch)
        elif batch.commit.version - self._stored_through >= _REFRESH_AT:
            self._refresh_quietly(batch.commit.version)

    def refresh(self) -> list[str]:
        """Store every projection as it stands now, and the graph of a large lake; gives the names of those stored."""
        names = [*(name for name in TABLES if name != "batches"), "batches"]  # last: it says how far all others are
        stored = [name for name in names if self.projections.save(name, self.tables.entry(name))]
        if self._kept_graph.worth_saving(self.tables.table("edges").num_rows):
            self._kept_graph.save(self._graph.now())
        return stored

    @cached_property
    def _kept_graph(self) -> KeptGraph:
        from agent_world.lake.kept_graph import KeptGraph

        return KeptGraph(self.storage, self.projections)

    @cached_property
    def _graph(self) -> LiveGraph:
        from agent_world.lake.live_graph import LiveGraph

        return LiveGraph(self.tables, self._kept_graph.load)

    def _append(self, batch: Batch, since: int | None = None) -> Commit:
        now = datetime.now(UTC)
        return self.log.append(batch.id, lambda version, committed: batch.draft(version, committed, now), since=since)

    def _refresh_quietly(self, version: int) -> None:
        """Store the projections unless another process has done so lately; the batch itself is safe already."""
        self._stored_through = self.projections.folded_through("batches")
        if version - self._stored_through < _REFRESH_AT:
            return
        self._stored_through = version
        try:
            with self.storage.exclusive("refresh") as held:
                if held:
                    self.refresh()
        except (LakeError, DeltaError, OSError) as error:
            _log.warning("projections were not stored (%s); `agent-world replay` makes them anew", error)

    def _note_reuse(self, batch: Batch) -> None:
        """A run that finds work done says so; the tables do not move."""
        committed = self._batches.row(batch.id)
        if batch.run_id is None or committed is None or committed["run_id"] == batch.run_id:
            return
        note = Batch(self, "reused", batch.id, batch.run_id, batch.run_id, batch.code_version)
        note.reuse()
        self._append(note)

    def _compare(self, batch: Batch) -> None:
        """Sound the alarm when the batch was committed before, by whom ever, and this one has made other content."""
        won = self.batch_events(batch.id)
        columns = [won.column(name).to_pylist() for name in ("derivation_hash", "content_hash", "version_id")]
        first = {derivation: (content, version) for derivation, content, version in zip(*columns, strict=True)}
        differ = {d: second for d, second in batch.contents().items() if d in first and first[d][0] != second}
        if differ:
            with self.begin("alarm", batch.id, derivation=sha256(canonical_json(differ)), run_id=batch.run_id) as alarm:
                for derivation, second in differ.items():
                    alarm.alarm(first[derivation][1], derivation, second)
        lost = [version for version in batch.made if not self.has(version)]
        if lost:
            raise DivergedError(batch.id[:12], sorted({artifact_id_of(version) for version in lost}))


def _claim(storage: Storage, create: bool) -> None:
    """See that `storage` holds a lake that this code can read, or make it one."""
    try:
        marker = storage.read(MARKER)
    except FileNotFoundError:
        found = next((item.key for item in storage.list() if not item.key.endswith(".aside")), None)
        if found is not None and storage.exists(MARKER):
            return _claim(storage, create)  # another process is making it one just now
        if found is not None:
            raise NotALakeError(storage.uri, f"it has no {MARKER} but holds {found}") from None
        if not create:
            raise NotALakeError(storage.uri, "there is nothing") from None
        storage.check()
        storage.write_new(MARKER, MARK)
        return
    try:
        check_mark(storage.uri, marker)
    except ValueError as error:
        raise NotALakeError(storage.uri, f"its {MARKER} cannot be read") from error
    storage.check()


def check_mark(uri: str, mark: bytes) -> None:
    """See that this code can read the lake that `mark` is the marker of.

    Raises:
        ValueError: it is no marker. LakeFromNewerVersionError: it is that of a newer version of this code.
    """
    try:
        said = json.loads(mark)
        if said["lake"] != "agent-world":
            raise ValueError(said["lake"])
        found = int(said["format"])
    except (TypeError, KeyError) as error:
        raise ValueError(str(error)) from error
    if found > FORMAT:
        raise LakeFromNewerVersionError(uri, found, FORMAT)
