"""A database snapshot laid ready for sessions, and what is worth knowing about it only once."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from hashlib import shake_256

from agent_world.environments import pages
from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import DOCUMENTS_FOLDER, SQLITE_FILE
from agent_world.environments.pages import PageFile, Tree, Value
from agent_world.identity import canonical_json, sha256
from agent_world.sandbox.memory import MemoryFile

Row = tuple[Value, ...]

_WRITE_VERSION = 18  # two header bytes: 1 rollback journal, 2 write-ahead log
_SUM_BYTES = 256
_KEPT = 64


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One table as SQLite knows it. `plain` tables can be read page by page, others only by SQL."""

    name: str
    columns: tuple[str, ...]
    declared: tuple[tuple[str, str, int, int], ...]  # name, type, not null, place in the primary key
    root: int
    plain: bool
    rowid_column: int | None
    real_columns: frozenset[int]

    @property
    def primary_key(self) -> tuple[str, ...]:
        keyed = sorted((place, name) for name, _, _, place in self.declared if place)
        return tuple(name for _, name in keyed)

    def row(self, rowid: int, record: bytes) -> Row | None:
        """The row that a record of this table holds; None when only SQLite can tell (a default filled in later)."""
        values = pages.decode(record)
        if len(values) != len(self.columns):
            return None
        if self.rowid_column is not None:
            values[self.rowid_column] = rowid
        for index in self.real_columns:
            if type(values[index]) is int:
                values[index] = float(values[index])
        return tuple(values)


class Snapshot:
    """The bytes of one `D`: in sealed memory that every session maps, with its schema, page owners and row sums."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.database = self.files.get(SQLITE_FILE) or _empty_database()
        prefix = f"{DOCUMENTS_FOLDER}/"
        self.documents = {
            path.removeprefix(prefix): self.files[path] for path in sorted(files) if path.startswith(prefix)
        }
        if not self.database.startswith(b"SQLite format 3\0"):
            raise CorruptStateError(f"{SQLITE_FILE} is no SQLite database")

    @cached_property
    def database_memory(self) -> MemoryFile:
        return MemoryFile(with_log(self.database, True))

    @cached_property
    def documents_memory(self) -> MemoryFile:
        return MemoryFile(b"".join(self.documents.values()))

    @cached_property
    def documents_index(self) -> dict[str, tuple[int, int]]:
        index, offset = {}, 0
        for path, content in self.documents.items():
            index[path] = (offset, len(content))
            offset += len(content)
        return index

    @cached_property
    def page_file(self) -> PageFile:
        return PageFile(self.database, {}, len(self.database) // pages.page_size(self.database))

    @cached_property
    def schema(self) -> tuple[tuple[TableSchema, ...], tuple[tuple[str, str, str], ...]]:
        """The tables in the order of their names, and ``(type, name, sql)`` of views and triggers."""
        with closing(self.connect()) as db:
            return _read_schema(db)

    @cached_property
    def trees(self) -> dict[str, Tree]:
        return {table.name: self.page_file.tree(table.root) for table in self.schema[0] if table.plain}

    @cached_property
    def owners(self) -> dict[int, tuple[str, int]]:
        """Page to (plain table, the leaf or inner page it counts for): an overflow page counts for its leaf."""
        owners = {}
        for name, tree in self.trees.items():
            owners |= {number: (name, number) for number in tree.inner | tree.leaves}
            for leaf in tree.leaves:
                owners |= {number: (name, leaf) for number in self.page_file.overflow(leaf)}
        return owners

    @cached_property
    def sums(self) -> dict[str, RowSum]:
        """The sum of every table's rows."""
        with closing(self.connect()) as db:
            return {table.name: RowSum.of(rows(db, table)) for table in self.schema[0]}

    @cached_property
    def document_digests(self) -> dict[str, str]:
        return {path: sha256(content) for path, content in self.documents.items()}

    def connect(self) -> sqlite3.Connection:
        """A private copy in memory."""
        return connect(self.database)


@dataclass(frozen=True, slots=True)
class RowSum:
    """A digest of a multiset of rows that follows changes: the sum of the rows' hashes modulo 2^2048.

    Rows may come in any order; adding a row and taking it away again leave no trace. (A sum modulo 2^256 could be
    forged by generalised birthday; 2048 bits put that out of reach.)
    """

    count: int
    total: int

    @classmethod
    def of(cls, rows: list[Row]) -> RowSum:
        return cls(0, 0).change((), rows)

    def change(self, removed: tuple[Row, ...] | list[Row], added: tuple[Row, ...] | list[Row]) -> RowSum:
        total = self.total + sum(map(_row_hash, added)) - sum(map(_row_hash, removed))
        return RowSum(self.count + len(added) - len(removed), total % (1 << (8 * _SUM_BYTES)))

    def as_json(self) -> list[int | str]:
        return [self.count, sha256(self.total.to_bytes(_SUM_BYTES, "big"))]


_by_objects: OrderedDict[tuple[tuple[str, int], ...], tuple[Snapshot, Mapping[str, bytes]]] = OrderedDict()
_by_content: OrderedDict[str, Snapshot] = OrderedDict()
_lock = threading.Lock()


def snapshot_of(files: Mapping[str, bytes]) -> Snapshot:
    """The snapshot of these files; the same one for the same bytes, while it is among the last used."""
    # By identity first: hashing a megabyte costs as much as a session. The entry keeps the objects, so ids stay theirs.
    objects = tuple((path, id(files[path])) for path in sorted(files))
    with _lock:
        if objects in _by_objects:
            _by_objects.move_to_end(objects)
            return _by_objects[objects][0]
    content = sha256(canonical_json({path: sha256(data) for path, data in files.items()}))
    with _lock:
        snapshot = _by_content.get(content) or Snapshot(files)
        _by_content[content] = snapshot
        _by_objects[objects] = (snapshot, dict(files))
        for cache in (_by_content, _by_objects):
            while len(cache) > _KEPT:
                cache.popitem(last=False)
    return snapshot


def connect(database: bytes) -> sqlite3.Connection:
    """A database in memory from the bytes of a file that may come from a hostile hand.

    Raises:
        CorruptStateError: the bytes are no database.
    """
    db = sqlite3.connect(":memory:")
    try:
        db.deserialize(with_log(database, False))
        db.execute("PRAGMA trusted_schema=OFF")
        db.execute("PRAGMA cell_size_check=ON")
        db.execute("SELECT count(*) FROM sqlite_schema")
    except sqlite3.Error as error:
        db.close()
        raise CorruptStateError(str(error)) from None
    return db


def rows(db: sqlite3.Connection, table: TableSchema) -> list[Row]:
    """All rows of `table`.

    Raises:
        CorruptStateError: SQLite cannot read them.
    """
    columns = ", ".join(quoted(name) for name in table.columns)
    try:
        return db.execute(f"SELECT {columns} FROM {quoted(table.name)}").fetchall()
    except sqlite3.Error as error:
        raise CorruptStateError(f"table {table.name}: {error}") from None


def quoted(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def with_log(database: bytes, log: bool) -> bytes:
    """The same database file, its header saying that it has (or has not) a write-ahead log."""
    mark = b"\2\2" if log else b"\1\1"
    if database[_WRITE_VERSION : _WRITE_VERSION + 2] == mark:
        return database
    return database[:_WRITE_VERSION] + mark + database[_WRITE_VERSION + 2 :]


def _read_schema(db: sqlite3.Connection) -> tuple[tuple[TableSchema, ...], tuple[tuple[str, str, str], ...]]:
    utf8 = db.execute("PRAGMA encoding").fetchone()[0] == "UTF-8"
    roots = dict(db.execute("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'").fetchall())
    tables = []
    for _, name, kind, _, without_rowid, _ in sorted(db.execute("PRAGMA main.table_list").fetchall()):
        if kind not in ("table", "shadow") or name.startswith("sqlite_"):
            continue
        columns = db.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        shown = [column for column in columns if column[6] != 1]
        keyed = [column for column in shown if column[5]]
        declared = [column[2].upper() for column in shown]
        alias = (
            len(keyed) == 1 and keyed[0][2].upper() == "INTEGER" and not without_rowid and not _has_key_index(db, name)
        )
        tables.append(
            TableSchema(
                name=name,
                columns=tuple(column[1] for column in shown),
                declared=tuple((column[1], column[2].upper(), column[3], column[5]) for column in shown),
                root=roots[name],
                plain=utf8 and not without_rowid and all(column[6] == 0 for column in columns),
                rowid_column=shown.index(keyed[0]) if alias else None,
                real_columns=frozenset(index for index, text in enumerate(declared) if _is_real(text)),
            )
        )
    others = db.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') ORDER BY type, name"
    )
    return tuple(tables), tuple(others.fetchall())


def _has_key_index(db: sqlite3.Connection, table: str) -> bool:
    # "INTEGER PRIMARY KEY DESC" looks like an alias of the rowid and is none: it has an index.
    return any(index[3] == "pk" for index in db.execute(f"PRAGMA index_list({quoted(table)})"))


def _is_real(declared: str) -> bool:
    if any(word in declared for word in ("INT", "CHAR", "CLOB", "TEXT", "BLOB")):
        return False
    return any(word in declared for word in ("REAL", "FLOA", "DOUB"))


def _row_hash(row: Row) -> int:
    parts = []
    for value in row:
        if value is None:
            parts.append("n")
        elif isinstance(value, str):
            parts.append(f"s{len(value)}:{value}")
        elif isinstance(value, bytes):
            parts.append(f"b{value.hex()}")
        elif isinstance(value, int):
            parts.append(f"i{value}")
        else:
            parts.append(f"f{value!r}")
    return int.from_bytes(shake_256("|".join(parts).encode()).digest(_SUM_BYTES), "big")


def _empty_database() -> bytes:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript("VACUUM")
        return db.serialize()
