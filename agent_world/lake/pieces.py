"""Files that pass by piece by piece, so that none of them must fit into memory."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from agent_world.identity import Digest

if TYPE_CHECKING:
    from agent_world.lake.storage import Storage

PIECE_BYTES = 8 << 20


def pieces(storage: Storage, key: str, size_bytes: int) -> Iterator[bytes]:
    """The first `size_bytes` of an object, in order.

    Raises:
        FileNotFoundError: there is none.
    """
    for offset in range(0, size_bytes, PIECE_BYTES):
        yield storage.read_range(key, offset, min(PIECE_BYTES, size_bytes - offset))


def digest_of(parts: Iterable[bytes]) -> Digest:
    """The sha256 of all pieces together."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return Digest(whole.hexdigest())


class PieceReader(io.RawIOBase):
    """Pieces as one file to read from."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = iter(parts)
        self._left = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` as far as the piece at hand goes; 0 at the end."""
        while not self._left:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._left = memoryview(part)
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count
