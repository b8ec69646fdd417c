"""A database snapshot laid ready for sessions, and what is worth knowing about it only once."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cached_property

from agent_world.environments import database, pages
from agent_world.environments.database import Schema
from agent_world.environments.keeping import Keeper
from agent_world.environments.model import DOCUMENTS_FOLDER, SQLITE_FILE
from agent_world.environments.pages import PageFile, Tree
from agent_world.environments.row_sum import RowSum
from agent_world.identity import Digest, canonical_json, sha256
from agent_world.sandbox.memory import MemoryFile

_DOCUMENTS = f"{DOCUMENTS_FOLDER}/"


class Snapshot:
    """The bytes of one `D` with what follows from them. `documents` has their paths below the documents folder."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.database = self.files.get(SQLITE_FILE) or _empty_database()
        self.documents = {
            path.removeprefix(_DOCUMENTS): files[path] for path in sorted(files) if path.startswith(_DOCUMENTS)
        }

    @cached_property
    def database_memory(self) -> MemoryFile:
        """The database in sealed memory that every session shares."""
        return MemoryFile(database.marked(self.database, log=True))

    @cached_property
    def documents_memory(self) -> MemoryFile:
        """All documents, one after the other, in sealed memory."""
        return MemoryFile(b"".join(self.documents.values()))

    @cached_property
    def documents_index(self) -> dict[str, tuple[int, int]]:
        """Offset and size of each document there."""
        index, offset = {}, 0
        for path, content in self.documents.items():
            index[path] = (offset, len(content))
            offset += len(content)
        return index

    @cached_property
    def document_digests(self) -> dict[str, Digest]:
        """The sha256 of each document."""
        return {path: sha256(content) for path, content in self.documents.items()}

    @cached_property
    def schema(self) -> Schema:
        """The tables, views and triggers."""
        with closing(self.connect()) as db:
            return database.read_schema(db)

    @cached_property
    def sums(self) -> dict[str, RowSum]:
        """The digest of each table's rows."""
        with closing(self.connect()) as db:
            return {table.name: RowSum().changed((), database.rows(db, table)) for table in self.schema.tables}

    @cached_property
    def digest(self) -> Digest:
        """The logical digest of the snapshot itself."""
        return state_digest(self.schema, self.sums, self.document_digests)

    @cached_property
    def complaints(self) -> frozenset[str]:
        """What SQLite finds wrong with it, for instance rows that break its own constraints."""
        with closing(self.connect()) as db:
            return frozenset(database.complaints(db))

    @cached_property
    def page_file(self) -> PageFile:
        """The database as pages."""
        return PageFile(self.database, {}, len(self.database) // pages.page_size(self.database))

    @cached_property
    def trees(self) -> dict[str, Tree]:
        """The pages of each plain table."""
        return {table.name: self.page_file.tree(table.root) for table in self.schema.tables if table.plain}

    @cached_property
    def owners(self) -> dict[int, tuple[str, int]]:
        """Page to (plain table, the page of its tree that it counts for): an overflow page counts for its leaf."""
        owners = {}
        for name, tree in self.trees.items():
            owners |= {number: (name, number) for number in tree.inner | tree.leaves}
            for leaf in tree.leaves:
                owners |= {number: (name, leaf) for number in self.page_file.overflow(leaf)}
        return owners

    @cached_property
    def schema_pages(self) -> frozenset[int]:
        """The pages that say which tables there are."""
        tree = self.page_file.tree(1)
        overflow = (number for leaf in tree.leaves for number in self.page_file.overflow(leaf))
        return tree.inner | tree.leaves | frozenset(overflow)

    def connect(self) -> sqlite3.Connection:
        """A private copy in memory; whoever calls closes it."""
        return database.connect(self.database)


def state_digest(schema: Schema, sums: Mapping[str, RowSum], documents: Mapping[str, Digest]) -> Digest:
    """The logical digest of a state of which these are the tables, the digests of their rows and of the documents."""
    tables = {table.name: [table.declared, sums[table.name].as_json()] for table in schema.tables}
    return sha256(canonical_json({"tables": tables, "others": schema.others, "documents": documents}))


_snapshots = Keeper(Snapshot)


def snapshot_of(files: Mapping[str, bytes]) -> Snapshot:
    """The snapshot of these files; the same one for the same bytes, while it is among the last used."""
    return _snapshots.of(files)


def _empty_database() -> bytes:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("PRAGMA user_version=0")
        return db.serialize()
