"""The lineage graph of a view, carried forward as events arrive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from agent_world.lake.fold import open_fold
from agent_world.lake.graph import Graph
from agent_world.lake.tables import Tables


class StoredGraph(NamedTuple):
    """A graph as it was kept, and the `events` version up to which it knows everything."""

    folded_through: int
    graph: Graph


class LiveGraph:
    """Begins with what was kept, else with the tables `versions` and `edges`, and takes the events behind it."""

    def __init__(self, tables: Tables, kept: Callable[[], StoredGraph | None] = lambda: None) -> None:
        self._tables, self._kept = tables, kept
        self._stored: StoredGraph | None = None
        self._lock = threading.Lock()

    def now(self) -> StoredGraph:
        """The graph of everything that there is now."""
        with self._lock:
            version = self._tables.version()
            if self._stored is None:
                self._stored = self._kept() or StoredGraph(
                    version, Graph.of(self._tables.table("versions"), self._tables.table("edges"))
                )
            if self._stored.folded_through < version:
                events = self._tables.events_after(self._stored.folded_through, version)
                tail = [open_fold(name, None, lambda digest: b"") for name in ("versions", "edges")]
                for fold in tail:
                    fold.apply(events)
                self._stored = StoredGraph(version, self._stored.graph.grown(*(fold.table() for fold in tail)))
            return self._stored
