"""The events table: the one append-only Delta table that is the truth, written only here and only by delta-rs.

A commit is a compare-and-swap on the table version: its rows carry the version they must land at (`commit_version`),
and delta-rs is told not to rebase. So the order of everything is in the rows, survives compaction, and a duplicate of
a batch cannot slip in between the check and the commit.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from agent_world.lake.delta_log import blame, log_key, read_commit
from agent_world.lake.errors import (
    CommitError,
    DamagedError,
    DiskFullError,
    LakeBusyError,
    LakeError,
    LakeFromNewerVersionError,
    StoreFailedError,
    blame_full_disk,
    is_disk_full,
)
from agent_world.lake.faults import reach
from agent_world.lake.parquet import decode, scan
from agent_world.lake.runs import gathered, starts_of
from agent_world.lake.storage import Storage
from lake_schemas import EVENTS, lifts

FOLDER = "events"
SCHEMA = pa.schema([pa.field(c.name, c.type) for c in EVENTS.all_columns])

TABLE_OPTIONS = {
    # History must outlive any pin: only gc removes files, and nothing removes log entries.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 3650 days",
    "delta.deletedFileRetentionDuration": "interval 3650 days",
}
_EVENTS_OPTIONS = {
    **TABLE_OPTIONS,
    "delta.appendOnly": "true",
    # Payloads are long: statistics about them would fill the log with copies of them.
    "delta.dataSkippingStatsColumns": "commit_version,position,event_type,kind,artifact_id,version_id,batch",
}
_CONFLICTS = 400  # races lost before giving up; each is another writer's progress
_FAULTS = 6  # other failures of the store before giving up
_COMPACT_AT = 64  # live files; the cost of a commit grows with them, not with the checkpoint interval
_TAIL = 256  # commits followed one by one before a fresh load is cheaper


class Commit(NamedTuple):
    """A batch in the log. `fresh` is False when it had already been committed, by us or by somebody else."""

    version: int
    fresh: bool


class Compaction(NamedTuple):
    """Data files before and after."""

    before: int
    after: int


Committed = Callable[[str], bool]
"""Whether a batch is in the log."""


class Draft(NamedTuple):
    """Rows for one commit, and the batches among them beside the one that is committed."""

    events: pa.Table
    batches: Sequence[str] = ()


class _Chunk(NamedTuple):
    after: int  # events with after < commit_version <= through, in order
    through: int
    events: pa.Table


class EventLog:
    """Reads and appends events; keeps what it has read. One object may be used from several threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.RLock()
        self._table: DeltaTable | None = None
        self._version = -1
        self._wide = False
        self._chunks: list[_Chunk] = []
        self._recent: dict[int, pa.Table] = {}

    def create(self) -> None:
        """Make the empty table unless it is there."""
        for left in reversed(range(_FAULTS)):
            if self._storage.exists(log_key(FOLDER, 0)):
                return
            if self._storage.exists(log_key(FOLDER, 1)):
                raise DamagedError(log_key(FOLDER, 0), "the file is missing")
            with blame_full_disk(self._storage.uri, FOLDER):
                try:
                    self._make()
                except (DeltaError, OSError, StoreFailedError) as error:
                    # Somebody else made it first, or the reply was lost: look again.
                    if not left or is_disk_full(error):
                        raise

    def version(self) -> int:
        """The newest version, after a look at the store: one existence check when nothing happened."""
        with self._lock:
            if self._version < 0:
                self._version = self._open().version()
            while self._storage.exists(log_key(FOLDER, self._version + 1)):
                self._follow(self._version + 1)
            return self._version

    def read(self, after: int, through: int) -> pa.Table:
        """Events with ``after < commit_version <= through``, in order."""
        with self._lock:
            self.version()
            floor = self._chunks[0].after if self._chunks else self._version
            if after < min(floor, through):
                self._chunks.insert(0, _Chunk(after, floor, self._load(after, floor)))
            parts = [_cut(chunk, after, through) for chunk in self._chunks if chunk.through > after]
            return pa.concat_tables([SCHEMA.empty_table(), *parts])

    def commit(self, version: int) -> pa.Table:
        """The events of one commit."""
        with self._lock:
            for chunk in self._chunks:
                if chunk.after < version <= chunk.through:
                    return _cut(chunk, version - 1, version)
            if version not in self._recent:
                if len(self._recent) >= 32:
                    self._recent.pop(next(iter(self._recent)))
                events = self._entry(version)
                self._recent[version] = self._load(version - 1, version) if events is None else events
            return self._recent[version]

    def handle(self, version: int | None = None) -> DeltaTable:
        """A fresh Delta handle, at `version` when given.

        Raises:
            DamagedError: a file of the log is wrong; it is named.
        """
        uri, options = self._storage.table_uri(FOLDER), self._storage.options
        try:
            return self._storage.patient(lambda: DeltaTable(uri, version=version, storage_options=options))
        except TableNotFoundError:
            raise
        except DeltaError as error:  # a store in trouble is an OSError
            damaged = blame(self._storage, FOLDER)
            if damaged is None:
                raise
            raise damaged from error

    def append(self, key: str, draft: Callable[[int, Committed], Draft], *, since: int | None = None) -> Commit:
        """Commit, exactly once, what `draft` makes for the version it will land at.

        `draft` may ask which batches are committed already; the answer holds for the commit. When the reply is lost,
        the next attempt finds the batch in the log. With `since`, a version at which the caller knows that the batch
        was not there, only what came later is looked through; without, the mark of the batch is asked for.

        Raises:
            CommitError: all attempts failed. DiskFullError: no space.
        """
        conflicts = faults = 0
        while True:
            with self._lock:
                try:
                    table = self._widened(self._open())
                    if self._holds(table, key, since):
                        return Commit(table.version(), fresh=False)
                    version = table.version() + 1
                    events, keys = draft(version, self._committed(table.version()))
                    reach("event_commit")
                    self._write(table, [key, *keys], events)
                    self._storage.sync(*self._files(version), log_key(FOLDER, version))
                    reach("after_event_commit")
                    if self._version == version - 1:
                        self._remember(version, events)
                    self._compact_quietly(table)
                    return Commit(version, fresh=True)
                except (DeltaError, OSError, StoreFailedError) as error:
                    conflict = isinstance(error, CommitFailedError)
                    if not conflict:
                        self._table = None
                    if is_disk_full(error):
                        return self._landed(key, error)
                    conflicts, faults = conflicts + conflict, faults + (not conflict)
                    if conflicts >= _CONFLICTS or faults >= _FAULTS:
                        raise CommitError(key[:12], conflicts + faults, str(error)) from error
            time.sleep(random.uniform(0, min(0.5, 0.005 * 2 ** min(conflicts + 4 * faults, 7))))

    def _make(self) -> None:
        with self._storage.discreet():
            DeltaTable.create(
                self._storage.table_uri(FOLDER),
                SCHEMA,
                mode="ignore",
                configuration=_EVENTS_OPTIONS,
                storage_options=self._storage.options,
                description=EVENTS.meaning,
            )

    def _widened(self, table: DeltaTable) -> DeltaTable:
        """The table with the columns of today: one that older code made lacks those that came since."""
        if not self._wide:
            known = {field.name for field in table.schema().fields}
            missing = [field for field in SCHEMA if field.name not in known]
            if missing:
                with self._storage.discreet():
                    table.alter.add_columns(Schema.from_arrow(pa.schema(missing)).fields)
                self._table = None
                table = self._open()
            self._wide = True
        return table

    def _holds(self, table: DeltaTable, key: str, since: int | None) -> bool:
        """Whether `table`, at its version, holds the batch: the commit that follows succeeds at no other version."""
        if since is None:
            return _marked(table, key)  # exact as well, but it reads the log since its last checkpoint each time
        return key in self.read(since, table.version()).column("batch").to_pylist()

    def _committed(self, version: int) -> Committed:
        """Whether a batch is in the log at `version`: by its events, as a mark outlives events that were lost."""

        def committed(batch: str) -> bool:
            nonlocal known
            if known is None:
                known = set(self.read(-1, version).column("batch").unique().to_pylist())
            return batch in known

        known: set[str] | None = None
        return committed

    def _landed(self, key: str, error: Exception) -> Commit:
        """A disk may fill up after the commit, while a checkpoint is written: then the batch is safe."""
        table = self._open()
        if _marked(table, key):
            return Commit(table.version(), fresh=False)
        raise DiskFullError(self._storage.uri, f"batch {key[:12]}") from error

    def _write(self, table: DeltaTable, keys: Sequence[str], events: pa.Table) -> None:
        with self._storage.discreet():
            write_deltalake(
                table,
                events,
                mode="append",
                writer_properties=WriterProperties(compression="ZSTD", compression_level=1),
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(key, 1) for key in keys],
                    max_commit_retries=0,  # a rebased commit would carry the wrong commit_version
                ),
            )

    def compact(self) -> Compaction:
        """Rewrite small files into few. Versions that were stay readable.

        Raises:
            LakeBusyError: another compaction is at work, or writers that leave it no time.
            DiskFullError, ReadOnlyError: there is no room for it.
        """
        with self._lock, blame_full_disk(self._storage.uri, FOLDER):
            before = len(self._open().file_uris())
            try:
                if not self._compact(1):
                    raise LakeBusyError(self._storage.uri, "another compaction is at work")
            except CommitFailedError as error:
                raise LakeBusyError(self._storage.uri, "other writers commit all the while") from error
            return Compaction(before, len(self._open().file_uris()))

    def _compact_quietly(self, table: DeltaTable) -> None:
        """Keep the number of files small; the batch that made it too large is safe, whatever happens."""
        if len(table.file_uris()) > _COMPACT_AT:
            try:
                self._compact(_COMPACT_AT)
            except (DeltaError, OSError, LakeError):
                self._table = None

    def _compact(self, most: int) -> bool:
        """Leave no more than `most` files, unless somebody else is at it: whether nobody was."""
        with self._storage.exclusive("compact") as held:
            if held:
                self._rewrite(most)
            return held

    def _rewrite(self, most: int) -> None:
        # delta-rs lets two compactions of the same files succeed, after which all their rows are there twice (it
        # retries whatever it is told, and takes no notice of files that were removed without a change of data). So
        # there is one at a time, and each begins with what the last one left.
        table = self.handle()
        if len(table.file_uris()) > most:
            with self._storage.discreet():
                table.optimize.compact()
            self._storage.sync(*self._files(table.version()), log_key(FOLDER, table.version()))
        self._table = table

    def _open(self) -> DeltaTable:
        try:
            if self._table is None:
                self._table = self.handle()
            elif self._storage.exists(log_key(FOLDER, self._table.version() + 1)):
                self._storage.patient(self._table.update_incremental)  # far dearer than the look
        except TableNotFoundError as error:
            raise DamagedError(f"{self._storage.uri}/{FOLDER}", "there is no table") from error
        return self._table

    def _files(self, version: int, *, fresh: bool = False) -> list[str]:
        """Keys of the data files that came with `version`; with `fresh` only those that hold new rows."""
        commit = read_commit(self._storage, FOLDER, version)
        why = commit.why()
        if why is not None:
            raise DamagedError(commit.key, why)
        return [f"{FOLDER}/{path}" for path in commit.paths("add", new_rows=fresh)]

    def _entry(self, version: int) -> pa.Table | None:
        """The events that came with `version`; None when they lie elsewhere, as in a compacted file."""
        keys = self._files(version, fresh=True)
        if not keys:
            return None
        try:
            parts = [decode(key, self._storage.read(key)) for key in keys]
        except FileNotFoundError:
            return None
        parts = [in_columns_of_today(part, self._storage.uri) for part in parts]
        return pa.concat_tables([SCHEMA.empty_table(), *parts])

    def _follow(self, version: int) -> None:
        events = self._entry(version)
        self._remember(version, self._load(version - 1, version) if events is None else events)

    def _remember(self, version: int, events: pa.Table) -> None:
        """Add the events of the next version to what is known; many small chunks become one."""
        self._chunks.append(_Chunk(version - 1, version, events))
        self._version = version
        if len(self._chunks) > _TAIL:
            parts = pa.concat_tables([chunk.events for chunk in self._chunks]).combine_chunks()
            self._chunks = [_Chunk(self._chunks[0].after, version, parts)]

    def _load(self, after: int, through: int) -> pa.Table:
        def wanted(file: dict[str, Any]) -> bool:
            lowest, highest = file.get("min.commit_version"), file.get("max.commit_version")
            return lowest is None or highest is None or (highest > after and lowest <= through)

        table = self.handle()
        files = scan(self._storage, FOLDER, table, wanted=wanted)
        parts = [in_columns_of_today(part, self._storage.uri) for part in files]
        events = pa.concat_tables([SCHEMA.empty_table(), *parts])
        if after >= 0 or through < table.version():
            events = events.filter((pc.field("commit_version") > after) & (pc.field("commit_version") <= through))
        return in_order(events)


def in_columns_of_today(part: pa.Table, uri: str) -> pa.Table:
    """Events of the lake at `uri` as they were written, in the columns of today; those that are newer are null.

    Raises:
        LakeFromNewerVersionError: newer code wrote them. DamagedError: a column is lost.
    """
    have = set(part.column_names)
    oldest, newest = _versions(part) if "schema_version" in have else (lifts.FIRST, lifts.FIRST)
    lost = [column.name for column in EVENTS.all_columns if column.since <= oldest and column.name not in have]
    if lost:
        raise DamagedError(FOLDER, f"a data file has no column {lost[0]}")
    if newest > lifts.newest():
        by = pc.max(part.filter(pc.field("schema_version") == newest).column("code_version")).as_py()
        raise LakeFromNewerVersionError(uri, newest, lifts.newest(), "event schema", by)
    columns = [part.column(f.name) if f.name in have else pa.nulls(part.num_rows, f.type) for f in SCHEMA]
    return pa.table(columns, names=SCHEMA.names).cast(SCHEMA)


def _versions(events: pa.Table) -> tuple[int, int]:
    """The oldest and the newest schema version among events; those of today when there are none."""
    found = pc.min_max(events.column("schema_version")).as_py()
    return found["min"] or lifts.newest(), found["max"] or lifts.newest()


def _marked(table: DeltaTable, batch: str) -> bool:
    return table.transaction_version(batch) is not None


def in_order(events: pa.Table) -> pa.Table:
    """Events in order. Files come in any order, but what was committed together lies together: move runs, not rows.

    Older versions let compactions meet, which left events twice: each is given once.
    """
    if not events.num_rows:
        return events
    versions, positions = (events.column(name).to_numpy() for name in ("commit_version", "position"))
    starts = starts_of((np.diff(versions) != 0) | (np.diff(positions) != 1))
    stops = np.append(starts[1:], len(versions))
    order = np.lexsort((positions[starts], versions[starts]))
    first, last = starts[order], stops[order] - 1
    same = versions[first[1:]] == versions[last[:-1]]
    if (same & (positions[first[1:]] <= positions[last[:-1]])).any():
        rows = np.lexsort((positions, versions))
        once = (np.diff(versions[rows]) != 0) | (np.diff(positions[rows]) != 0)
        return events.take(rows[np.append(True, once)])
    return gathered(events, starts[order], stops[order])


def _cut(chunk: _Chunk, after: int, through: int) -> pa.Table:
    if after <= chunk.after and through >= chunk.through:
        return chunk.events
    versions = chunk.events.column("commit_version").to_numpy()
    start, stop = np.searchsorted(versions, [after, through], side="right")
    return chunk.events.slice(start, stop - start)
