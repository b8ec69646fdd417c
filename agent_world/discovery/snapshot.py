"""A database with its values: structured tables to the files of `D`, and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent_world.discovery.columns import Value
from agent_world.environments.model import SQLITE_FILE, Database, Document, Table
from agent_world.environments.state import logical_digest
from agent_world.identity import VersionId

_SQL_TYPES = {"text": "TEXT", "integer": "INTEGER", "real": "REAL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """One structured table with its typed values, column by column."""

    table: Table
    columns: Mapping[str, tuple[Value, ...]]

    def rows(self) -> list[tuple[Value, ...]]:
        """Rows in key order."""
        key = [self.columns[name] for name in self.table.primary_key]
        order = sorted(range(len(key[0])), key=lambda i: tuple(_sortable(values[i]) for values in key)) if key else []
        columns = [self.columns[column.name] for column in self.table.columns]
        return [tuple(values[i] for values in columns) for i in order]


def assemble(
    built: Sequence[Built],
    *,
    database_id: str,
    theme: VersionId,
    round: int = 0,
    documents: Sequence[Document] = (),
    document_files: Mapping[str, bytes] | None = None,
    richness: Mapping[str, float] | None = None,
) -> tuple[Database, dict[str, bytes]]:
    """One database snapshot of structured tables and documents, with its logical digest."""
    files = {SQLITE_FILE: sqlite_bytes(built), **(document_files or {})}
    database = Database(
        database_id=database_id,
        theme=theme,
        round=round,
        tables=tuple(item.table for item in built),
        documents=tuple(documents),
        digest=logical_digest(files),
        richness=richness or {},
    )
    return database, files


def load(database: Database, files: Mapping[str, bytes]) -> list[Built]:
    """The tables of a database with their values, from its files."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(files[SQLITE_FILE])
        built = []
        for table in database.tables:
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            rows = connection.execute(f'SELECT {names} FROM "{table.name}" ORDER BY rowid').fetchall()
            columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
            built.append(
                Built(
                    table=table,
                    columns={column.name: values for column, values in zip(table.columns, columns, strict=True)},
                )
            )
        return built
    finally:
        connection.close()


def share_found(values: Sequence[Value], among: Iterable[Value]) -> float:
    """The share of `values`, gaps aside, that stand `among` others, to four digits; 1 where there are none."""
    known = [value for value in values if value is not None]
    theirs = set(among)
    return round(sum(value in theirs for value in known) / len(known), 4) if known else 1.0


def sqlite_bytes(built: Sequence[Built]) -> bytes:
    """The SQLite file of structured tables: same content, same bytes (with one SQLite library)."""
    referred = {
        (foreign.parent, foreign.parent_column)
        for item in built
        for foreign in item.table.foreign_keys
        if foreign.integrity == 1.0
    }
    connection = sqlite3.connect(":memory:")
    try:
        for item in built:
            connection.execute(_create_statement(item.table, referred))
            marks = ", ".join("?" * len(item.table.columns))
            connection.executemany(f'INSERT INTO "{item.table.name}" VALUES ({marks})', item.rows())
        connection.commit()
        connection.execute("VACUUM")
        return connection.serialize()
    finally:
        connection.close()


def _create_statement(table: Table, referred: Collection[tuple[str, str]]) -> str:
    lines = []
    for column in table.columns:
        line = f'"{column.name}" {_SQL_TYPES[column.type]}'
        if (column.name,) == table.primary_key:
            line += " PRIMARY KEY"
        elif (table.name, column.name) in referred:
            line += " UNIQUE"
        lines.append(line if column.nullable or "PRIMARY" in line else f"{line} NOT NULL")
    lines.extend(
        f'FOREIGN KEY ("{foreign.column}") REFERENCES "{foreign.parent}" ("{foreign.parent_column}")'
        for foreign in table.foreign_keys
        if foreign.integrity == 1.0
    )  # a link that real data breaks is recorded and measured, not enforced
    return f'CREATE TABLE "{table.name}" ({", ".join(lines)})'


def _sortable(value: Value) -> tuple[int, float, str]:
    if value is None:
        return (0, 0.0, "")
    return (2, 0.0, value) if isinstance(value, str) else (1, float(value), "")
