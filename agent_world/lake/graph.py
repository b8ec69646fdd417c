"""The lineage graph in memory: exact versions and their edges, compressed row by row in both directions.

A graph never changes; `grown` gives the next one. Nodes are numbers in the order in which versions were committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MANY = 8
"""Nodes from which on numpy gathers neighbours faster than a loop does."""


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


class Chain(NamedTuple):
    """The nodes of a shortest way, both ends included; None when there is none, or none was found in time."""

    versions: list[str] | None
    truncated: bool


class Edges(NamedTuple):
    """Edges as numbers, one place an edge: child node, parent node, and the place of its role among the roles."""

    child: np.ndarray
    parent: np.ndarray
    role: np.ndarray


class Named:
    """A text for each of many places, each of the few different texts kept once."""

    def __init__(self, names: tuple[str, ...], places: np.ndarray) -> None:
        self.names, self.places = names, places

    def __getitem__(self, place: int) -> str:
        return self.names[self.places[place]]

    def followed_by(self, texts: Iterable[str]) -> Named:
        """These texts, then `texts`."""
        more = list(texts)
        names = tuple(dict.fromkeys([*self.names, *more]))
        places = np.array([names.index(text) for text in more], dtype=np.uint16)
        return Named(names, np.concatenate([self.places, places]))


class _Rows:
    """The neighbours of each node: those of node n, with their roles, stand from ``start[n]`` to ``start[n + 1]``."""

    def __init__(self, nodes: int, of: np.ndarray, neighbour: np.ndarray, role: np.ndarray) -> None:
        self.start = np.zeros(nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(of, minlength=nodes), out=self.start[1:])
        order = None if np.all(of[1:] >= of[:-1]) else np.argsort(of, kind="stable")
        self.neighbour = neighbour if order is None else neighbour[order]
        self.role = role if order is None else role[order]
        # A memoryview hands out one element at a third of what numpy takes.
        self._starts, self._neighbours = self.start.data, self.neighbour.data

    def of(self, node: int) -> list[int]:
        return self._neighbours[self._starts[node] : self._starts[node + 1]].tolist()

    def with_roles(self, node: int) -> list[tuple[int, int]]:
        start, end = self._starts[node], self._starts[node + 1]
        return list(zip(self._neighbours[start:end].tolist(), self.role[start:end].tolist(), strict=True))

    def places(self, nodes: np.ndarray) -> np.ndarray:
        """Where the neighbours of all `nodes` stand, one after the other."""
        counts = self.counts(nodes)
        ends = counts.cumsum()
        places = np.arange(ends[-1] if len(ends) else 0)
        places += (self.start[nodes] - ends + counts).repeat(counts)
        return places

    def counts(self, nodes: np.ndarray) -> np.ndarray:
        return self.start[nodes + 1] - self.start[nodes]


class _Search:
    """A breadth-first search, layer by layer; each layer is in the order of its nodes."""

    def __init__(self, rows: _Rows, nodes: int, start: int, without: Sequence[int] = ()) -> None:
        self._rows, self._without = rows, without
        self._seen = np.zeros(nodes, dtype=np.bool_)
        self._seen[start] = True
        self._flags = self._seen.data
        self.layer: list[int] = [start]

    def advance(self) -> list[int]:
        """Go on to the next layer; empty when everything was reached."""
        if len(self.layer) >= _MANY:
            self.layer = self._gathered()
        else:
            self.layer = sorted({node for node in self._one_by_one() if not self._flags[node]})
            for node in self.layer:
                self._flags[node] = True
        return self.layer

    def _gathered(self) -> list[int]:
        places = self._rows.places(np.array(self.layer))
        if self._without:
            places = places[~np.isin(self._rows.role[places], self._without)]
        found = self._rows.neighbour[places]
        found = found[~self._seen[found]]
        self._seen[found] = True
        found.sort()
        first = np.ones(len(found), dtype=np.bool_)
        np.not_equal(found[1:], found[:-1], out=first[1:])
        return found[first].tolist()

    def _one_by_one(self) -> Iterator[int]:
        for node in self.layer:
            if self._without:
                yield from (other for other, role in self._rows.with_roles(node) if role not in self._without)
            else:
                yield from self._rows.of(node)


class Graph:
    """Children point to parents. `names` and `kinds` are given by node, `edges` name nodes and roles by number.

    The kind of a node is empty where the versions do not know it: the end of an edge that lies before a snapshot.
    """

    def __init__(self, names: Sequence[str], kinds: Named, roles: Sequence[str], edges: Edges) -> None:
        # Tuples of texts are nothing to the garbage collector, which walks through lists of millions every so often.
        self.names, self.kinds, self.roles, self.edges = tuple(names), kinds, tuple(roles), edges
        self._node = dict(zip(self.names, range(len(self.names)), strict=True))
        self._up = _Rows(len(names), edges.child, edges.parent, edges.role)
        self._down = _Rows(len(names), edges.parent, edges.child, edges.role)

    @classmethod
    def of(cls, versions: pa.Table, edges: pa.Table) -> Graph:
        """The graph of the rows of tables `versions` and `edges`."""
        names, kinds = (versions.column(name) for name in ("version_id", "kind"))
        columns = [edges.column(name) for name in ("child", "parent")]
        ends = [_indices(column, names) for column in columns]
        strange = [column.filter(pa.array(places < 0)) for column, places in zip(columns, ends, strict=True)]
        if any(map(len, strange)):
            more = pa.chunked_array([chunk for column in strange for chunk in column.chunks]).unique()
            names = pa.chunked_array([*names.chunks, more])
            kinds = pa.chunked_array([*kinds.chunks, pa.repeat("", len(more))])
            ends = [_indices(column, names) for column in columns]
        roles = _coded(edges.column("role"))
        return cls(names.to_pylist(), _coded(kinds), roles.names, Edges(ends[0], ends[1], roles.places))

    def grown(self, versions: pa.Table, edges: pa.Table) -> Graph:
        """This graph with more rows of `versions` and `edges`; what it has already counts once."""
        rows = zip(*(versions.column(name).to_pylist() for name in ("version_id", "kind")), strict=True)
        fresh = {name: kind for name, kind in rows if name not in self._node}
        links = [Link(*row) for row in zip(*(edges.column(n).to_pylist() for n in Link._fields), strict=True)]
        links = [link for link in dict.fromkeys(links) if not self._has(link)]
        if not fresh and not links:
            return self
        ends = (end for link in links for end in (link.child, link.parent))
        fresh = {end: "" for end in ends if end not in self._node} | fresh
        node = {name: place for place, name in enumerate(fresh, len(self.names))}
        place = {**{end: self._node[end] for link in links for end in link[:2] if end in self._node}, **node}
        roles = list(dict.fromkeys([*self.roles, *(link.role for link in links)]))
        more = Edges(
            np.array([place[link.child] for link in links], dtype=np.int32),
            np.array([place[link.parent] for link in links], dtype=np.int32),
            np.array([roles.index(link.role) for link in links], dtype=np.uint16),
        )
        joined = Edges(*(np.concatenate(pair) for pair in zip(self.edges, more, strict=True)))
        return Graph([*self.names, *fresh], self.kinds.followed_by(fresh.values()), roles, joined)

    def __contains__(self, version_id: str) -> bool:
        return version_id in self._node

    def kind(self, version_id: str) -> str:
        """The kind of a version."""
        return self.kinds[self._node[version_id]]

    def walk(self, start: str, *, up: bool, depth: int | None = None, limit: int, without: Iterable[str] = ()) -> Walk:
        """Breadth first from `start`, itself left out: to its parents when `up`, else to its children.

        Edges whose role is in `without` are not followed. At most `depth` hops, at most `limit` versions; of those that
        are equally far, the first that were committed.
        """
        skip = [self.roles.index(role) for role in without if role in self.roles]
        search = _Search(self._up if up else self._down, len(self.names), self._node[start], skip)
        hops: list[Hop] = []
        step = 0
        while search.layer and (depth is None or step < depth):
            step += 1
            layer, room = search.advance(), limit - len(hops)
            hops.extend(map(Hop._make, zip(map(self.names.__getitem__, layer[:room]), repeat(step), strict=False)))
            if len(layer) > room:
                return Walk(hops, truncated=True)
        return Walk(hops, truncated=bool(search.layer and search.advance()))

    def chain(self, start: str, end: str, *, limit: int) -> Chain:
        """A shortest way from `start` to `end` by parents only; of equally short ones, that of the oldest versions.

        Looks at no more than `limit` versions on the way.
        """
        search, last = _Search(self._up, len(self.names), self._node[start]), self._node[end]
        layers = [search.layer]
        while last not in layers[-1]:
            layers.append(search.advance())
            if not layers[-1] or sum(map(len, layers)) > limit:
                return Chain(None, truncated=bool(layers[-1]))
        way = [last]
        for layer in reversed(layers[:-1]):
            way.append(min(set(layer).intersection(self._down.of(way[-1]))))
        return Chain([self.names[node] for node in reversed(way)], truncated=False)

    def links(self, version_ids: Iterable[str]) -> list[Link]:
        """The edges among `version_ids`."""
        nodes = np.array(sorted({self._node[version] for version in version_ids}), dtype=np.int64)
        places = self._up.places(nodes)
        children, parents = nodes.repeat(self._up.counts(nodes)), self._up.neighbour[places]
        inside = np.isin(parents, nodes)
        found = (children[inside].tolist(), parents[inside].tolist(), self._up.role[places][inside].tolist())
        return sorted(
            Link(self.names[child], self.names[parent], self.roles[role])
            for child, parent, role in zip(*found, strict=True)
        )

    def neighbours(self, version_id: str, *, up: bool) -> list[Link]:
        """The edges from `version_id` to its parents, or from its children to it."""
        found = (self._up if up else self._down).with_roles(self._node[version_id])
        if up:
            return sorted(Link(version_id, self.names[node], self.roles[role]) for node, role in found)
        return sorted(Link(self.names[node], version_id, self.roles[role]) for node, role in found)

    def _has(self, link: Link) -> bool:
        child, parent = self._node.get(link.child), self._node.get(link.parent)
        if child is None or parent is None:
            return False
        return any(self.roles[role] == link.role for node, role in self._up.with_roles(child) if node == parent)


def _coded(texts: pa.ChunkedArray) -> Named:
    coded = texts.dictionary_encode().combine_chunks()
    if isinstance(coded, pa.ChunkedArray):  # of no chunk at all
        return Named((), np.zeros(0, dtype=np.uint16))
    return Named(tuple(coded.dictionary.to_pylist()), coded.indices.to_numpy().astype(np.uint16))


def _indices(values: pa.ChunkedArray, names: pa.ChunkedArray) -> np.ndarray:
    found = pc.fill_null(pc.index_in(values, value_set=names), -1)
    return found.to_numpy().astype(np.int32, copy=False)
