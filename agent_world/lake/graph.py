"""The lineage graph in memory: exact versions and their edges, in rustworkx, carried forward as events arrive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import rustworkx as rx


class Hop(NamedTuple):
    """A version that a walk reached, and how far away it is."""

    version_id: str
    distance: int


class Link(NamedTuple):
    """One edge."""

    child: str
    parent: str
    role: str


class Walk(NamedTuple):
    """What a walk reached, nearest first; `truncated` says that there is more."""

    hops: list[Hop]
    truncated: bool


class Graph:
    """Children point to parents. `edges` gives the rows of table `edges`, which only grows."""

    def __init__(self, versions: Callable[[], pa.Table], edges: Callable[[], pa.Table]) -> None:
        self._versions = versions
        self._edges = edges
        self._graph: rx.PyDiGraph[str, str] = rx.PyDiGraph()
        self._node: dict[str, int] = {}
        self._seen_versions = self._seen_edges = 0
        self._lock = threading.RLock()

    def refresh(self) -> Graph:
        """Take what is new."""
        with self._lock:
            versions = self._versions().column("version_id").slice(self._seen_versions)
            self._add_nodes(versions.to_pylist())
            self._seen_versions += len(versions)
            edges = self._edges().slice(self._seen_edges)
            self._add_edges(edges)
            self._seen_edges += edges.num_rows
        return self

    def __contains__(self, version_id: str) -> bool:
        return version_id in self._node

    def walk(self, start: str, *, up: bool, depth: int | None = None, limit: int, without: Iterable[str] = ()) -> Walk:
        """Breadth first from `start`, itself left out: to its parents when `up`, else to its children.

        Edges whose role is in `without` are not followed. At most `depth` hops, at most `limit` versions.
        """
        skip = set(without)
        here = self._node[start]
        distance = {here: 0}
        layer, step = [here], 0
        while layer and (depth is None or step < depth):
            step += 1
            reached = dict.fromkeys(n for node in layer for n in self._next(node, up, skip) if n not in distance)
            room = limit - (len(distance) - 1)
            layer = sorted(reached, key=self._graph.__getitem__)
            if len(layer) > room:
                distance.update(dict.fromkeys(layer[:room], step))
                return Walk(self._hops(distance), truncated=True)
            distance.update(dict.fromkeys(layer, step))
        more = bool(layer) and any(n not in distance for node in layer for n in self._next(node, up, skip))
        return Walk(self._hops(distance), truncated=more)

    def links(self, version_ids: Iterable[str]) -> list[Link]:
        """The edges among `version_ids`."""
        nodes = {self._node[version] for version in version_ids}
        return sorted(
            Link(self._graph[child], self._graph[parent], role)
            for node in nodes
            for child, parent, role in self._graph.out_edges(node)
            if parent in nodes
        )

    def neighbours(self, version_id: str, *, up: bool) -> list[Link]:
        """The edges from `version_id` to its parents, or from its children to it."""
        node = self._node[version_id]
        found = self._graph.out_edges(node) if up else self._graph.in_edges(node)
        return sorted(Link(self._graph[child], self._graph[parent], role) for child, parent, role in found)

    def _next(self, node: int, up: bool, skip: set[str]) -> Iterable[int]:
        if not skip:
            return self._graph.successor_indices(node) if up else self._graph.predecessor_indices(node)
        found = self._graph.out_edges(node) if up else self._graph.in_edges(node)
        return [parent if up else child for child, parent, role in found if role not in skip]

    def _hops(self, distance: dict[int, int]) -> list[Hop]:
        return [Hop(self._graph[node], far) for node, far in distance.items() if far]

    def _add_nodes(self, versions: list[str]) -> None:
        fresh = list(dict.fromkeys(version for version in versions if version not in self._node))
        self._node.update(zip(fresh, self._graph.add_nodes_from(fresh), strict=True))

    def _add_edges(self, edges: pa.Table) -> None:
        if not edges.num_rows:
            return
        names = pa.array(list(self._node), type=pa.string())
        ends = [_indices(edges.column(column), names) for column in ("child", "parent")]
        if any(array.min() < 0 for array in ends):  # an end that this point in history does not know
            self._add_nodes([*edges.column("child").to_pylist(), *edges.column("parent").to_pylist()])
            names = pa.array(list(self._node), type=pa.string())
            ends = [_indices(edges.column(column), names) for column in ("child", "parent")]
        self._graph.add_edges_from(
            list(zip(ends[0].tolist(), ends[1].tolist(), edges.column("role").to_pylist(), strict=True))
        )


def _indices(values: pa.ChunkedArray, names: pa.Array) -> np.ndarray:
    return pc.fill_null(pc.index_in(values, value_set=names), -1).to_numpy()
