"""What of a stored database is not as recorded: it is loaded twice, and what its payload says is measured again.

The gate of databases (discovery/gates.py) writes a database from the tables it was made of. Workflow tables come later
and with a schema of their own, so here the stored file itself is taken apart and put together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing

from agent_world.environments import database as sqlite_file
from agent_world.environments.database import TableSchema, quoted
from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import SQLITE_FILE, Database, ForeignKey
from agent_world.environments.snapshot import Snapshot


def database_faults(database: Database, files: Mapping[str, bytes]) -> list[str]:
    """What a database does not hold of what its payload says; empty when all is as recorded.

    It is loaded as it is, and once more by inserting every row into an empty database of the same schema, last row
    first, foreign keys enforced: both give the recorded digest. Tables, rows and the integrity of foreign keys are
    measured.
    """
    snapshot = Snapshot(files)
    try:
        with closing(snapshot.connect()) as db:
            faults = _of_content(database, db)
            if snapshot.digest != database.digest:
                faults.append("other_digest")
            try:
                again = Snapshot({**files, SQLITE_FILE: _inserted_again(db, snapshot.schema.tables)})
            except sqlite3.IntegrityError as error:
                return [*faults, f"failed_insert ({error})"]
            return faults if again.digest == snapshot.digest else [*faults, "unstable_load"]
    except (CorruptStateError, sqlite3.Error) as error:
        return [f"unreadable ({error})"]


def _of_content(database: Database, db: sqlite3.Connection) -> list[str]:
    faults = []
    if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
        faults.append("damaged")
    stored = {table.name: table for table in sqlite_file.read_schema(db).tables}
    for table in database.tables:
        if table.name not in stored or stored[table.name].columns != tuple(column.name for column in table.columns):
            faults.append(f"other_schema ({table.name})")
            continue
        if db.execute(f"SELECT count(*) FROM {quoted(table.name)}").fetchone() != (table.rows,):
            faults.append(f"other_rows ({table.name})")
        for key in table.foreign_keys:
            measured = _integrity(db, table.name, key)
            if measured != key.integrity:
                faults.append(f"other_integrity ({table.name}.{key.column}: {measured}, not {key.integrity})")
    return faults


def _integrity(db: sqlite3.Connection, table: str, key: ForeignKey) -> float:
    """The share of values that resolve, as the miner measures it."""
    present = [value for value in _column(db, table, key.column) if value is not None]
    theirs = set(_column(db, key.parent, key.parent_column))
    return round(sum(value in theirs for value in present) / len(present), 4) if present else 1.0


def _column(db: sqlite3.Connection, table: str, column: str) -> list[sqlite_file.Value]:
    return [value for (value,) in db.execute(f"SELECT {quoted(column)} FROM {quoted(table)}")]


def _inserted_again(db: sqlite3.Connection, tables: tuple[TableSchema, ...]) -> bytes:
    """The bytes of a new database with the same rows.

    Raises:
        sqlite3.IntegrityError: a row that the schema does not take.
    """
    schema = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND (type = 'table') = ?"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        fresh.execute("PRAGMA foreign_keys = ON")
        fresh.execute("BEGIN")
        fresh.execute("PRAGMA defer_foreign_keys = ON")  # tables may refer to each other
        for (statement,) in db.execute(schema, (True,)):
            fresh.execute(statement)
        for table in tables:
            marks = ", ".join("?" * len(table.columns))
            fresh.executemany(f"INSERT INTO {quoted(table.name)} VALUES ({marks})", sqlite_file.rows(db, table)[::-1])
        for (statement,) in db.execute(schema, (False,)):
            fresh.execute(statement)
        fresh.execute("COMMIT")
        return fresh.serialize()
