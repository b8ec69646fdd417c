"""Which tables of a source belong into one database: the most linked ones around those that matter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from agent_world.discovery.keys import Keys, Link
from agent_world.discovery.model import RawTable

MAX_TABLES = 7
_WELL_LINKED = 3


def most_linked(
    tables: Sequence[RawTable], keys: Keys, *, relevance: Mapping[str, float] | None = None, limit: int = MAX_TABLES
) -> list[RawTable]:
    """Up to `limit` tables that hang together, grown from the most relevant and most linked one.

    `relevance` weighs tables by name (nothing given: all alike). The result keeps the order of `tables`.
    """
    relevance = relevance or {}
    by_name = {table.name: table for table in tables}
    links = [link for link in keys.links if link.child in by_name and link.parent in by_name]
    degree = {name: len(_neighbours(name, links)) for name in by_name}

    def weight(name: str) -> tuple[float, str]:
        rows = by_name[name].total
        size = math.log10(rows) if rows >= 5 else 0.0
        return (2.0 * relevance.get(name, 0.0) + min(degree[name], _WELL_LINKED) + 0.5 * min(size, 4.0), name)

    def is_ready(name: str, chosen: Sequence[str]) -> bool:
        """Whether the table says something here: a mere junction of keys needs both its ends."""
        parents = {link.column: link.parent for link in links if link.child == name}
        tells = set(by_name[name].header) - set(parents) - {keys.primary.get(name)}
        return bool(tells) or sum(parent in chosen for parent in parents.values()) >= 2

    chosen: list[str] = [max(by_name, key=weight)] if by_name else []
    while len(chosen) < limit:
        near = {name for known in chosen for name in _neighbours(known, links)} - set(chosen)
        near = {name for name in near if is_ready(name, chosen)}
        if not near:
            break
        chosen.append(max(near, key=lambda name: (len(_neighbours(name, links) & set(chosen)) + weight(name)[0], name)))
    return [table for table in tables if table.name in chosen]


def _neighbours(name: str, links: Sequence[Link]) -> set[str]:
    return {
        link.parent if link.child == name else link.child for link in links if name in {link.child, link.parent}
    } - {name}
