"""Reads database files that may come from a hostile hand: their schema, and their rows by SQL."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from agent_world.environments import pages
from agent_world.environments.errors import CorruptStateError
from agent_world.environments.pages import Value

Row = tuple[Value, ...]
"""The values of one row in the order of the table's columns."""

_MAGIC = b"SQLite format 3\0"
_VERSIONS = slice(18, 20)  # of the header; both bytes 1: rollback journal, both 2: write-ahead log
_LONGEST_VALUE = 64 << 20
_STEPS, _STEP_INSTRUCTIONS = 10_000, 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """One table as SQLite knows it. `plain` tables can be read page by page, others only by SQL.

    `declared` has name, type, not-null and place in the primary key (0: none) of each column.
    """

    name: str
    columns: tuple[str, ...]
    declared: tuple[tuple[str, str, int, int], ...]
    root: int
    plain: bool
    rowid_column: int | None
    real_columns: frozenset[int]

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of the key, in its order; () when there is none."""
        return tuple(name for _, name in sorted((place, name) for name, _, _, place in self.declared if place))

    def row(self, rowid: int, record: bytes) -> Row | None:
        """The row that a record of this table holds; None when only SQLite can tell (a default filled in later)."""
        values = pages.decode(record)
        if len(values) != len(self.columns):
            return None
        if self.rowid_column is not None:
            values[self.rowid_column] = rowid
        for index in self.real_columns:
            if isinstance(value := values[index], int):
                values[index] = float(value)
        return tuple(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The tables in the order of their names, and ``(type, name, sql)`` of each view and trigger."""

    tables: tuple[TableSchema, ...]
    others: tuple[tuple[str, str, str], ...]


def connect(file: bytes) -> sqlite3.Connection:
    """A private copy in memory of a database file; whoever calls closes it.

    Its schema is not trusted, and a query that runs for minutes or makes values of gigabytes is cut off.

    Raises:
        CorruptStateError: the bytes are no database.
    """
    db = sqlite3.connect(":memory:")
    try:
        db.deserialize(marked(file, log=False))
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        steps = iter(range(_STEPS))
        db.set_progress_handler(lambda: next(steps, None) is None, _STEP_INSTRUCTIONS)
        db.execute("PRAGMA trusted_schema=OFF")
        db.execute("PRAGMA cell_size_check=ON")
        db.execute("SELECT count(*) FROM sqlite_schema")
    except sqlite3.Error as error:
        db.close()
        raise CorruptStateError(str(error)) from None
    except CorruptStateError:
        db.close()
        raise
    return db


def read_schema(db: sqlite3.Connection) -> Schema:
    """The schema of a database: what of it is logical, that is no index and none of SQLite's own tables.

    Raises:
        CorruptStateError: SQLite cannot read it.
    """
    try:
        utf8 = db.execute("PRAGMA encoding").fetchone()[0] == "UTF-8"
        roots = dict(db.execute("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'").fetchall())
        listed = sorted(db.execute("PRAGMA main.table_list").fetchall())
        tables = tuple(
            _table(db, name, roots[name], without_rowid=bool(without_rowid), utf8=utf8)
            for _, name, kind, _, without_rowid, _ in listed
            if kind in ("table", "shadow") and not name.startswith("sqlite_")
        )
        others = db.execute(
            "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') ORDER BY type, name"
        ).fetchall()
    except (sqlite3.Error, UnicodeDecodeError, KeyError) as error:
        raise CorruptStateError(f"its schema ({error})") from None
    return Schema(tables=tables, others=tuple(others))


def rows(db: sqlite3.Connection, table: TableSchema) -> list[Row]:
    """All rows of `table`, in no particular order.

    Raises:
        CorruptStateError: SQLite cannot read them.
    """
    columns = ", ".join(quoted(name) for name in table.columns)
    try:
        return db.execute(f"SELECT {columns} FROM {quoted(table.name)}").fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise CorruptStateError(f"table {table.name} ({error})") from None


def complaints(db: sqlite3.Connection) -> list[str]:
    """What SQLite itself finds wrong with a database, reading all of it."""
    try:
        return [text for (text,) in db.execute("PRAGMA integrity_check") if text != "ok"]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return [str(error)]


def quoted(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def marked(file: bytes, *, log: bool) -> bytes:
    """The same database file, its header saying that it has (or has not) a write-ahead log.

    Raises:
        CorruptStateError: the bytes are no database.
    """
    if not file.startswith(_MAGIC):
        raise CorruptStateError("it is no SQLite database")
    mark = b"\2\2" if log else b"\1\1"
    if file[_VERSIONS] == mark:
        return file
    return file[: _VERSIONS.start] + mark + file[_VERSIONS.stop :]


def _table(db: sqlite3.Connection, name: str, root: int, *, without_rowid: bool, utf8: bool) -> TableSchema:
    everything = db.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
    columns = [column for column in everything if column[6] != 1]  # 1: hidden, 2 and 3: generated
    keyed = [index for index, column in enumerate(columns) if column[5]]
    is_rowid = (
        len(keyed) == 1
        and columns[keyed[0]][2].upper() == "INTEGER"
        and not without_rowid
        # "INTEGER PRIMARY KEY DESC" looks like the rowid and is not: it has an index.
        and not any(index[3] == "pk" for index in db.execute(f"PRAGMA index_list({quoted(name)})"))
    )
    return TableSchema(
        name=name,
        columns=tuple(column[1] for column in columns),
        declared=tuple((column[1], column[2].upper(), column[3], column[5]) for column in columns),
        root=root,
        plain=utf8 and not without_rowid and all(column[6] == 0 for column in everything),
        rowid_column=keyed[0] if is_rowid else None,
        real_columns=frozenset(index for index, column in enumerate(columns) if _is_real(column[2].upper())),
    )


def _is_real(declared: str) -> bool:
    """Whether SQLite gives a column of this type real affinity: its integers are stored short and read as floats."""
    if any(word in declared for word in ("INT", "CHAR", "CLOB", "TEXT", "BLOB")):
        return False
    return any(word in declared for word in ("REAL", "FLOA", "DOUB"))
