"""What follows from the bytes of a snapshot, kept for the last snapshots that were used."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from agent_world.identity import Digest, canonical_json, sha256

T = TypeVar("T")
_KEPT = 64


class Keeper(Generic[T]):
    """Makes a value of a snapshot's files; gives the same one for the same bytes while it is among the last used."""

    def __init__(self, make: Callable[[Mapping[str, bytes]], T]) -> None:
        self._make = make
        self._by_objects: OrderedDict[tuple[tuple[str, int], ...], tuple[T, Mapping[str, bytes]]] = OrderedDict()
        self._by_content: OrderedDict[Digest, T] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, files: Mapping[str, bytes]) -> T:
        """The value of these files."""
        # By identity first: hashing a megabyte costs as much as a session. The entry keeps the objects, so that their
        # ids stay theirs.
        objects = tuple((path, id(files[path])) for path in sorted(files))
        with self._lock:
            if objects in self._by_objects:
                self._by_objects.move_to_end(objects)
                return self._by_objects[objects][0]
        content = sha256(canonical_json({path: sha256(data) for path, data in files.items()}))
        with self._lock:
            value = self._by_content.get(content) or self._make(files)
            self._by_content[content] = value
            self._by_objects[objects] = (value, dict(files))
            for cache in (self._by_content, self._by_objects):
                while len(cache) > _KEPT:
                    cache.popitem(last=False)
        return value
