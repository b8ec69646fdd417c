"""The state of an environment: its logical digest, and what changed between two states.

The digest covers the schema, the typed rows of every table and the documents; not the bytes of the SQLite file, which
depend on the order of writing. A state that a session left is a snapshot plus what the session changed, so that digest
and diff cost what the change costs, whatever the size of `D`.
"""

from __future__ import annotations

import base64
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any

from agent_world.environments import change_log, comparison, database, pages
from agent_world.environments.change_log import Changes
from agent_world.environments.comparison import RowChanges, SchemaChangedError
from agent_world.environments.database import TableSchema
from agent_world.environments.difference import (
    DocumentChange,
    RowChange,
    StateDiff,
    TableDiff,
    normalised,
    table_diff,
)
from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import DOCUMENTS_FOLDER, SQLITE_FILE, Table
from agent_world.environments.pages import PageFile
from agent_world.environments.sealed import SealedState
from agent_world.environments.snapshot import Snapshot, snapshot_of, state_digest
from agent_world.identity import Digest, sha256

__all__ = [
    "CORRUPT",
    "DocumentChange",
    "EnvironmentState",
    "RowChange",
    "State",
    "StateDiff",
    "TableDiff",
    "diff",
    "logical_digest",
    "normalised",
    "read_state",
]

CORRUPT: Digest = sha256("a state that cannot be read")
"""Stands for the digest of a state that has none, so that an episode which ended in one replays to the same."""

_NO_CHANGES = Changes({}, 0, {})


class EnvironmentState(ABC):
    """One state of `D`, whatever its format (formats.py)."""

    @cached_property
    @abstractmethod
    def files(self) -> Mapping[str, bytes]:
        """The whole state as files, in the layout of `Environment.files`."""

    @cached_property
    @abstractmethod
    def digest(self) -> Digest:
        """The logical digest.

        Raises:
            CorruptStateError: the state cannot be read.
        """

    @property
    @abstractmethod
    def untouched(self) -> bool:
        """Whether its files are those of the snapshot that it began with."""

    @abstractmethod
    def sealed(self) -> SealedState:
        """The whole state in sealed memory, for sessions that look at it: the snapshot's own while untouched.

        Else it is made anew and freed when it is dropped, so that states can be kept without their descriptors.
        """

    @abstractmethod
    def since(self, before: Any, tables: Sequence[Table]) -> StateDiff:
        """What differs from `before`, a state of the same format, to here; see `diff`."""

    def check(self) -> None:
        """See that the state is whole, in what no digest covers too; it may cost a reading of all of it.

        Raises:
            CorruptStateError: it is broken where the snapshot that it began with was not.
        """
        _ = self.digest


class State(EnvironmentState):
    """One state of `D` in records and documents: `files` are made only when asked for."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.snapshot: Snapshot = snapshot_of(files)
        self.changes: Changes = _NO_CHANGES

    @classmethod
    def of(cls, snapshot: Snapshot, changes: Changes) -> State:
        """The state that `snapshot` became by `changes`."""
        state = cls.__new__(cls)
        state.snapshot, state.changes = snapshot, changes
        return state

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The whole state as files."""
        files = dict(self.snapshot.files)
        if self.changes.pages:
            files[SQLITE_FILE] = self._database()
        for path, text in self.changes.documents.items():
            files[f"{DOCUMENTS_FOLDER}/{path}"] = text.encode()
        return files

    @property
    def untouched(self) -> bool:
        """Whether nothing was written over its snapshot."""
        return not self.changes

    def sealed(self) -> SealedState:
        """The whole state in sealed memory."""
        laid = Snapshot(self.files) if self.changes else self.snapshot
        return SealedState("sqlite+files", laid.database_memory, laid.documents_memory, laid.documents_index)

    @cached_property
    def digest(self) -> Digest:
        """The logical digest.

        Raises:
            CorruptStateError: the state cannot be read.
        """
        if not self.changes:
            return self.snapshot.digest
        documents = {**self.snapshot.document_digests}
        documents |= {path: sha256(text) for path, text in self.changes.documents.items()}
        try:
            schema = self.snapshot.schema
            sums = {**self.snapshot.sums}
            sums |= {name: sums[name].changed(*rows) for name, rows in self.row_changes.items()}
        except SchemaChangedError:
            fresh = self._as_snapshot()
            schema, sums = fresh.schema, fresh.sums
        return state_digest(schema, sums, documents)

    @cached_property
    def row_changes(self) -> Mapping[str, RowChanges]:
        """How the rows differ from the snapshot's, by table.

        Raises:
            SchemaChangedError: the schema differs as well.
            CorruptStateError: the changed pages hold no rows.
        """
        if not self.changes.pages:
            return {}
        return comparison.changed_rows(self.snapshot, self._page_file, self.connect)

    def connect(self) -> sqlite3.Connection:
        """A private copy of the database in memory; whoever calls closes it.

        Raises:
            CorruptStateError: it is no database.
        """
        return database.connect(self._database())

    def document(self, path: str) -> str | None:
        """The text of a document, base64 of what is no text; None when there is none."""
        if path in self.changes.documents:
            return self.changes.documents[path]
        content = self.snapshot.documents.get(path)
        if content is None:
            return None
        try:
            return content.decode()
        except UnicodeDecodeError:
            return base64.b64encode(content).decode()

    def since(self, before: State, tables: Sequence[Table]) -> StateDiff:
        """What differs from `before` to here; `tables` name the keys by which rows are told apart.

        Raises:
            CorruptStateError: a state cannot be read.
        """
        keys = {table.name: table.primary_key for table in tables}
        found = {}
        for schema, changes in _row_differences(before, self):
            if changes.removed or changes.added:
                key = keys.get(schema.name, ())
                if not key or not set(key) <= set(schema.columns):
                    key = schema.primary_key or schema.columns
                found[schema.name] = table_diff(schema.columns, key, changes)
        return StateDiff(tables=found, documents=_document_differences(before, self))

    def check(self) -> None:
        """See `EnvironmentState`; a database that was written to is read by SQLite, its indexes and free pages too."""
        super().check()
        if self.changes.pages:
            with closing(self.connect()) as db:
                found = sorted({*database.complaints(db)} - self.snapshot.complaints)
            if found:
                raise CorruptStateError(found[0])

    def rows_of_everything(self) -> Mapping[str, tuple[TableSchema, list[database.Row]]]:
        """Every table with all of its rows: what is left to compare when two states share no snapshot."""
        fresh = self._as_snapshot()
        db = fresh.connect()
        try:
            return {table.name: (table, database.rows(db, table)) for table in fresh.schema.tables}
        finally:
            db.close()

    @cached_property
    def _page_file(self) -> PageFile:
        return PageFile(self.snapshot.database, self.changes.pages, self.changes.count)

    def _database(self) -> bytes:
        base, changes = self.snapshot.database, self.changes
        if not changes.pages:
            return base
        size = pages.page_size(base)
        data = bytearray(base[: changes.count * size].ljust(changes.count * size, b"\0"))
        for number, page in changes.pages.items():
            data[(number - 1) * size : number * size] = page
        return database.marked(bytes(data), log=False)

    def _as_snapshot(self) -> Snapshot:
        return Snapshot({SQLITE_FILE: self._database()})

    def __reduce__(self) -> tuple[Any, ...]:
        return State, (dict(self.files),)


def read_state(snapshot: Snapshot, pages_log: bytes, documents_log: bytes) -> State:
    """The state of a session over `snapshot`, from its two logs.

    Raises:
        CorruptStateError: the logs are not what SQLite and the guest write.
    """
    changes = change_log.read_changes(pages_log, documents_log, pages.page_size(snapshot.database))
    kept = {path: text for path, text in changes.documents.items() if snapshot.documents.get(path) != text.encode()}
    return State.of(snapshot, Changes(changes.pages, changes.count, kept))


def logical_digest(files: Mapping[str, bytes]) -> Digest:
    """The digest of a state: the same for the same schema, rows and documents, in whatever order they were written.

    Raises:
        CorruptStateError: the database cannot be read.
    """
    return State(files).digest


def diff(before: EnvironmentState, after: EnvironmentState, tables: Sequence[Table]) -> StateDiff:
    """What differs between two states of one format; `tables` name the keys by which rows are told apart.

    Raises:
        CorruptStateError: a state cannot be read.
    """
    return after.since(before, tables)


def _row_differences(before: State, after: State) -> list[tuple[TableSchema, RowChanges]]:
    if before.snapshot is after.snapshot:
        try:
            return _differences_from_one_snapshot(before, after)
        except SchemaChangedError:
            pass
    old, new = before.rows_of_everything(), after.rows_of_everything()
    differences = []
    for name in sorted({*old, *new}):
        old_schema, old_rows = old.get(name, (None, []))
        new_schema, new_rows = new.get(name, (None, []))
        if old_schema is None or new_schema is None or old_schema.columns == new_schema.columns:
            schema = new_schema or old_schema
            assert schema is not None
            differences.append((schema, comparison.subtracted(old_rows, new_rows)))
        else:
            raise CorruptStateError(f"the columns of table {name} changed")
    return differences


def _differences_from_one_snapshot(before: State, after: State) -> list[tuple[TableSchema, RowChanges]]:
    old, new, nothing = before.row_changes, after.row_changes, RowChanges([], [])
    differences = []
    for schema in before.snapshot.schema.tables:
        if schema.name in old or schema.name in new:
            undone, done = old.get(schema.name, nothing), new.get(schema.name, nothing)
            differences.append(
                (schema, comparison.subtracted(undone.added + done.removed, undone.removed + done.added))
            )
    return differences


def _document_differences(before: State, after: State) -> dict[str, DocumentChange]:
    names = {*before.changes.documents, *after.changes.documents}
    if before.snapshot is not after.snapshot:
        names |= {*before.snapshot.documents, *after.snapshot.documents}
    found = {}
    for path in sorted(names):
        old, new = before.document(path), after.document(path)
        if old != new:
            found[path] = DocumentChange(before=old, after=new)
    return found
