"""Smaller tables that still refer to each other: parents are sampled first, children keep what resolves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from agent_world.discovery.keys import Link
from agent_world.discovery.model import RawTable
from agent_world.identity import sha256


def sample(tables: Sequence[RawTable], links: Sequence[Link], max_rows: int) -> list[RawTable]:
    """At most `max_rows` rows of each table; a row whose parent was sampled out goes too.

    Rows that other tables refer to come first, the rest by the hash of their cells, so that the choice depends on the
    content alone. A value that never resolved in the source stays: real data has broken links, and they are measured.
    """
    by_name = {table.name: table for table in tables}
    mentions = _mentions(by_name, links)
    kept: dict[str, list[tuple[str | None, ...]]] = {}
    for name in _parents_first(by_name, links):
        table = by_name[name]
        rows = list(table.rows)
        for link in links:
            if link.child == name and link.parent in kept and link.parent != name:
                rows = _resolving(rows, table, link, by_name[link.parent], kept[link.parent])
        if len(rows) > max_rows:
            rows = _choose(rows, table, mentions[name], max_rows)
        kept[name] = _with_ancestors(rows, table, [link for link in links if link.child == link.parent == name])
    return [replace(table, rows=tuple(kept[table.name])) for table in tables]


def _parents_first(tables: dict[str, RawTable], links: Sequence[Link]) -> list[str]:
    parents = {name: {link.parent for link in links if link.child == name and link.parent != name} for name in tables}
    order: list[str] = []
    while len(order) < len(tables):
        ready = [name for name in tables if name not in order and parents[name] <= set(order)]
        order.extend(ready or [next(name for name in tables if name not in order)])  # a cycle: start somewhere
    return order


def _mentions(tables: dict[str, RawTable], links: Sequence[Link]) -> dict[str, dict[str, Counter[str]]]:
    """For each table and referenced column, in how many child tables each value occurs."""
    found: dict[str, dict[str, Counter[str]]] = {name: {} for name in tables}
    for link in links:
        position = tables[link.child].header.index(link.column)
        values = {row[position] for row in tables[link.child].rows} - {None}
        found[link.parent].setdefault(link.parent_column, Counter()).update(values)
    return found


def _resolving(rows: list, table: RawTable, link: Link, parent: RawTable, parent_rows: list) -> list:
    position, parent_position = table.header.index(link.column), parent.header.index(link.parent_column)
    before = {row[parent_position] for row in parent.rows}
    gone = before - {row[parent_position] for row in parent_rows} - {None}
    return [row for row in rows if row[position] not in gone]


def _choose(rows: list, table: RawTable, mentions: dict[str, Counter[str]], limit: int) -> list:
    positions = [(table.header.index(column), counts) for column, counts in mentions.items()]

    def rank(indexed: tuple[int, tuple[str | None, ...]]) -> tuple[int, str]:
        row = indexed[1]
        return (-sum(counts[row[position]] for position, counts in positions), sha256(repr(row)))

    best = sorted(enumerate(rows), key=rank)[:limit]
    return [row for _, row in sorted(best)]


def _with_ancestors(rows: list, table: RawTable, links: Sequence[Link]) -> list:
    """Rows plus those that they refer to in their own table."""
    for link in links:
        position, key = table.header.index(link.column), table.header.index(link.parent_column)
        by_key = {row[key]: row for row in table.rows}
        have = {row[key] for row in rows}
        waiting = [row[position] for row in rows]
        while waiting:
            value = waiting.pop()
            if value is not None and value not in have and value in by_key:
                have.add(value)
                rows.append(by_key[value])
                waiting.append(by_key[value][position])
    return rows
