"""The data files of a Delta table, read in the caller's own threads.

Arrow's dataset reader hands Python objects to threads of its own. One that lets go of such an object while the
interpreter ends aborts the process, seldom (apache/arrow#34314, #39862); so bytes are fetched here, and decoded here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from agent_world.lake.errors import DamagedError
from agent_world.lake.storage import Storage

_AT_ONCE = 8
"""Files fetched side by side: over a network, waiting is most of it."""


def decode(key: str, data: bytes) -> pa.Table:
    """The rows of one data file.

    Raises:
        DamagedError: it is none.
    """
    try:
        with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False) as file:
            return file.read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise DamagedError(key, f"it cannot be read ({str(error).splitlines()[0]})") from error


def entries(table: DeltaTable) -> list[dict[str, Any]]:
    """What a table says of its data files: `path` in the table, `size_bytes`, ``min.<column>``, ``max.<column>`` ..."""
    return [
        {**entry, "path": unquote(entry["path"])} for entry in pa.table(table.get_add_actions(flatten=True)).to_pylist()
    ]


def scan(
    storage: Storage, folder: str, table: DeltaTable, *, wanted: Callable[[dict[str, Any]], bool] = lambda _: True
) -> Iterator[pa.Table]:
    """The rows of each data file of `table`, which lies at the key `folder`.

    `wanted` gets the table's entry for a file.

    Raises:
        DamagedError: a file is missing or cannot be read.
    """
    keys = [f"{folder}/{entry['path']}" for entry in entries(table) if wanted(entry)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for key, data in zip(keys, pool.map(lambda key: _fetch(storage, key), keys), strict=True):
            yield decode(key, data)


def _fetch(storage: Storage, key: str) -> bytes:
    try:
        return storage.read(key)
    except FileNotFoundError as error:
        raise DamagedError(key, "the file is missing") from error
