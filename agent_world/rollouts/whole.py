"""Keeps what long observations were before they were cut, so that many of them cost disk, not memory."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, MutableMapping
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple

from agent_world.environments.model import Json

MEMORY_BYTES = 256 << 10
"""What the values of one episode may take in memory, compressed; beyond that they go to a temporary file."""


class WholeValues(MutableMapping[int, Json]):
    """JSON values by the index of their step. What is taken out leaves room only when nothing is left in it."""

    def __init__(self, values: Mapping[int, Json] | None = None, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self._places: dict[int, _Place] = {}
        self._end = 0
        self._file = SpooledTemporaryFile(memory_bytes)
        self.update(values or {})

    def __getitem__(self, index: int) -> Json:
        return json.loads(zlib.decompress(self._data(index)))

    def __setitem__(self, index: int, value: Json) -> None:
        """Keep a value.

        Raises:
            OSError: there is no room for it.
        """
        self._keep(index, zlib.compress(json.dumps(value).encode(), level=1))

    def __delitem__(self, index: int) -> None:
        del self._places[index]
        if not self._places:
            self._end = 0
            self._file.truncate(0)

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"WholeValues(of steps {', '.join(map(str, self))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, ({index: self._data(index) for index in self},)

    def __del__(self) -> None:
        self._file.close()

    def _data(self, index: int) -> bytes:
        place = self._places[index]
        self._file.seek(place.start)
        return self._file.read(place.size)

    def _keep(self, index: int, data: bytes) -> None:
        self._file.seek(self._end)
        self._file.write(data)
        self._places[index] = _Place(self._end, len(data))
        self._end += len(data)


class _Place(NamedTuple):
    """Where a value lies in the file."""

    start: int
    size: int


def _restored(compressed: Mapping[int, bytes]) -> WholeValues:
    values = WholeValues()
    for index, data in compressed.items():
        values._keep(index, data)
    return values
