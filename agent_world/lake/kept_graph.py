"""The lineage graph kept beside the projections, so that a large lake answers at once.

It is a cache like them: one file under the generation in use, named after the `events` version up to which it knows
everything and after how many edges it has. It is written anew only when the graph has grown by a quarter, so keeping it
costs a fixed share of what is written; a reader takes the events behind it.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from agent_world.lake.graph import Edges, Graph, Named
from agent_world.lake.live_graph import StoredGraph
from agent_world.lake.projections import FOLDER, Projections
from agent_world.lake.storage import Storage

WORTH_KEEPING = 100_000
"""Edges from which on a graph is kept: a smaller one is built from the tables in a tenth of a second."""

_GROWN = 1.25
_CHECK_BYTES = 4


class _Kept(NamedTuple):
    folded_through: int
    edges: int
    key: str


class KeptGraph:
    """What is kept of the graph of one lake."""

    def __init__(self, storage: Storage, projections: Projections) -> None:
        self._storage, self._projections = storage, projections

    def load(self) -> StoredGraph | None:
        """The newest one; None when there is none that can be used."""
        for kept in reversed(self._list()):
            try:
                graph = _read(self._storage.read(kept.key))
            except (FileNotFoundError, pa.ArrowException):
                continue  # another one took its place, or a cache that cannot be read
            if graph is not None:
                return StoredGraph(kept.folded_through, graph)
        return None

    def worth_saving(self, edges: int) -> bool:
        """Whether a graph of so many edges is to be kept in the place of what is."""
        kept = self._list()
        return edges >= WORTH_KEEPING and (not kept or edges >= _GROWN * kept[-1].edges)

    def save(self, stored: StoredGraph) -> None:
        """Keep a graph in the place of older ones."""
        folder = self._folder()
        if folder is None:
            return
        before = self._list()
        key = f"{folder}/{stored.folded_through}-{len(stored.graph.edges.child)}.arrow"
        self._storage.write(key, _written(stored.graph))
        for kept in before:
            if kept.folded_through < stored.folded_through:
                self._storage.delete(kept.key)

    def _folder(self) -> str | None:
        generation = self._projections.generation()
        return None if generation is None else f"{FOLDER}/{generation}/lineage"

    def _list(self) -> list[_Kept]:
        folder, found = self._folder(), []
        for item in self._storage.list(folder) if folder else ():
            through, _, edges = item.key.rpartition("/")[2].removesuffix(".arrow").partition("-")
            if through.isdecimal() and edges.isdecimal():
                found.append(_Kept(int(through), int(edges), item.key))
        return sorted(found)


def _written(graph: Graph) -> bytes:
    columns = {
        "names": pa.array(graph.names, pa.large_string()),
        "kinds": pa.array(graph.kinds.places, pa.uint16()),
        "kind_names": pa.array(graph.kinds.names, pa.string()),
        "role_names": pa.array(graph.roles, pa.string()),
        **{name: pa.array(values) for name, values in graph.edges._asdict().items()},
    }
    lists = {name: pa.LargeListArray.from_arrays([0, len(values)], values) for name, values in columns.items()}
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    table = pa.table(lists)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    return zlib.crc32(data).to_bytes(_CHECK_BYTES, "big") + data


def _read(data: bytes) -> Graph | None:
    """The graph; None when its bytes are not those that were written."""
    body = memoryview(data)[_CHECK_BYTES:]
    if zlib.crc32(body) != int.from_bytes(data[:_CHECK_BYTES], "big"):
        return None
    table = pa.ipc.open_stream(pa.py_buffer(body)).read_all().combine_chunks()
    column = {name: table.column(name).chunk(0).values for name in table.column_names}
    return Graph(
        column["names"].to_pylist(),
        Named(tuple(column["kind_names"].to_pylist()), column["kinds"].to_numpy()),
        column["role_names"].to_pylist(),
        Edges(*(np.asarray(column[name]) for name in Edges._fields)),
    )
