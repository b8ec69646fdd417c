"""The logical identity of a state: what its rows and documents say, whatever the bytes of the SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from agent_world.environments.model import SQLITE_FILE
from agent_world.identity import Digest, canonical_json, sha256


def logical_digest(files: Mapping[str, bytes]) -> Digest:
    """The digest of schema, typed rows in key order and document hashes (design.md 4.2).

    The same rows inserted in another order give the same digest.
    """
    documents = {path: sha256(data) for path, data in files.items() if path != SQLITE_FILE}
    tables = _tables(files[SQLITE_FILE]) if SQLITE_FILE in files else {}
    return sha256(canonical_json({"tables": tables, "documents": documents}))


def _tables(data: bytes) -> dict[str, str]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(data)
        schema = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
        return {name: sha256(sql + "\n" + "\n".join(_rows(connection, name))) for name, sql in schema.fetchall()}
    finally:
        connection.close()


def _rows(connection: sqlite3.Connection, table: str) -> list[str]:
    quoted = '"' + table.replace('"', '""') + '"'
    return sorted(canonical_json([value.hex() if isinstance(value, bytes) else value for value in row])
                  for row in connection.execute(f"SELECT * FROM {quoted}"))
