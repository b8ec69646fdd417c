"""Finds the rows in which a changed database differs from its snapshot, by the pages that changed."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from sqlite3 import Connection
from typing import NamedTuple

from agent_world.environments import database
from agent_world.environments.database import Row, TableSchema
from agent_world.environments.errors import CorruptStateError
from agent_world.environments.pages import PageFile
from agent_world.environments.snapshot import Snapshot

_SCHEMA_ROOT = 1


class RowChanges(NamedTuple):
    """Whole rows that are gone and whole rows that have come; a changed row is in both."""

    removed: list[Row]
    added: list[Row]


class SchemaChangedError(Exception):
    """Tables were made, altered or dropped: rows of before and after cannot be told apart page by page."""


def changed_rows(snapshot: Snapshot, now: PageFile, connect: Callable[[], Connection]) -> dict[str, RowChanges]:
    """The row changes of each table that differs. `connect` opens the changed database for tables that are not plain.

    Raises:
        SchemaChangedError: the schema differs as well.
        CorruptStateError: the changed pages hold no rows.
    """
    try:
        before = snapshot.page_file
        if now.changed.keys() & snapshot.schema_pages:
            if before.records(before.tree(_SCHEMA_ROOT).leaves) != now.records(now.tree(_SCHEMA_ROOT).leaves):
                raise SchemaChangedError
        touched = _touched(snapshot, now)
        found: dict[str, RowChanges] = {}
        by_sql: list[TableSchema] = []
        for table in snapshot.schema.tables:
            if not table.plain:
                by_sql.append(table)
            elif table.name in touched:
                changes = _compared(snapshot, now, table, touched[table.name])
                if changes is None:
                    by_sql.append(table)
                else:
                    found[table.name] = changes
        if by_sql:
            with closing(snapshot.connect()) as old, closing(connect()) as new:
                found |= {
                    table.name: subtracted(database.rows(old, table), database.rows(new, table)) for table in by_sql
                }
    except (IndexError, ValueError, ArithmeticError, struct.error) as error:
        raise CorruptStateError(f"a changed page cannot be read ({error})") from None
    return {name: changes for name, changes in found.items() if changes.removed or changes.added}


def subtracted(old: Iterable[Row], new: Iterable[Row]) -> RowChanges:
    """What two multisets of rows do not share."""
    before, after = Counter(map(_typed, old)), Counter(map(_typed, new))
    return RowChanges(
        [row for row, _ in (before - after).elements()],
        [row for row, _ in (after - before).elements()],
    )


def _typed(row: Row) -> tuple[Row, tuple[type, ...]]:
    # 1 and 1.0 are equal in Python and different in SQLite.
    return row, tuple(map(type, row))


def _touched(snapshot: Snapshot, now: PageFile) -> dict[str, set[int]]:
    """The pages of each plain table's old tree that are no longer what they were."""
    before, touched = snapshot.page_file, {}
    for number, page in now.changed.items():
        if number in snapshot.owners and page != before.page(number):
            name, counts_for = snapshot.owners[number]
            touched.setdefault(name, set()).add(counts_for)
    for number in range(now.count + 1, before.count + 1):
        if number in snapshot.owners:
            name, counts_for = snapshot.owners[number]
            touched.setdefault(name, set()).add(counts_for)
    return touched


def _compared(snapshot: Snapshot, now: PageFile, table: TableSchema, touched: set[int]) -> RowChanges | None:
    """The row changes of one table; None when SQLite has to tell.

    A page can only come into a tree, or leave it, by a change of an inner page or of the root. So the rows that differ
    lie on old leaves that changed or left, and on new leaves that changed or came.
    """
    old_tree = snapshot.trees[table.name]
    new_tree = now.tree(table.root) if table.root in touched or touched & old_tree.inner else old_tree
    old = snapshot.page_file.records((touched & old_tree.leaves) | (old_tree.leaves - new_tree.leaves))
    new = now.records((touched & new_tree.leaves) | (new_tree.leaves - old_tree.leaves))
    gone = [table.row(rowid, record) for rowid, record in old.items() if new.get(rowid) != record]
    come = [table.row(rowid, record) for rowid, record in new.items() if old.get(rowid) != record]
    removed, added = ([row for row in rows if row is not None] for rows in (gone, come))
    return subtracted(removed, added) if len(removed) + len(added) == len(gone) + len(come) else None
