"""The rule author `psi`: a deterministic proposal of tools and tests for a database (method.md 3)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent_world.discovery.toolsmith.choice import choose
from agent_world.discovery.toolsmith.documents import document_drafts
from agent_world.discovery.toolsmith.drafts import Draft
from agent_world.discovery.toolsmith.reading import reading_drafts
from agent_world.discovery.toolsmith.view import view_of
from agent_world.discovery.toolsmith.workflows import overlays_for
from agent_world.discovery.toolsmith.workflows.base import ThemeWords
from agent_world.environments.model import SQLITE_FILE, Database, Table, Tool, ToolTest
from agent_world.environments.state import logical_digest
from agent_world.identity import rng

FEWEST_TESTS = 4

_SQL_TYPES = {"text": "TEXT", "integer": "INTEGER", "real": "REAL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProposal:
    """Tools as proposed, with their tests, over the database that carries them: it may have new tables of workflows."""

    database: Database
    files: Mapping[str, bytes]
    tools: tuple[Tool, ...]
    tests: tuple[ToolTest, ...]


def propose_tools(database: Database, files: Mapping[str, bytes], theme: ThemeWords, seed: int) -> ToolProposal:
    """Write tools and tests for `database`. Same database, theme and seed: same proposal, byte for byte."""
    view = view_of(database, files)
    overlays = overlays_for(view, theme, seed)
    reading = reading_drafts(view, rng(seed, "reading", database.database_id))
    documents = document_drafts(view, files, seed)
    drafts = choose(view, theme, overlays, _testable(reading), _testable(documents))
    tables = [table for overlay in overlays for table in overlay.tables]
    grown = with_tables(files, tables)
    return ToolProposal(
        database=replace(database, tables=(*database.tables, *tables), digest=logical_digest(grown)),
        files=grown,
        tools=tuple(draft.tool for draft in drafts),
        tests=tuple(test for draft in drafts for test in draft.tests),
    )


def _testable(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts that the data allows to test from enough sides: over a handful of rows, tests come out the same."""
    return [draft for draft in drafts if len(draft.tests) >= FEWEST_TESTS]


def with_tables(files: Mapping[str, bytes], tables: Sequence[Table]) -> dict[str, bytes]:
    """`files` with `tables` added, empty."""
    db = sqlite3.connect(":memory:")
    try:
        db.deserialize(files[SQLITE_FILE])
        for table in tables:
            db.execute(_create_statement(table))
        db.commit()
        return {**files, SQLITE_FILE: db.serialize()}
    finally:
        db.close()


def _create_statement(table: Table) -> str:
    lines = [
        f'"{column.name}" {_SQL_TYPES[column.type]}{"" if column.nullable else " NOT NULL"}' for column in table.columns
    ]
    key = ", ".join(f'"{name}"' for name in table.primary_key)
    links = [
        f'FOREIGN KEY ("{link.column}") REFERENCES "{link.parent}" ("{link.parent_column}")'
        for link in table.foreign_keys
    ]
    lines += [f"PRIMARY KEY ({key})", *links]
    return f'CREATE TABLE "{table.name}" ({", ".join(lines)})'
