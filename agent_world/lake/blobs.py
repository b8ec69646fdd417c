"""Content-addressed bytes: packs for blobs below 1 MB, single objects above, keyed by the sha256 of the raw bytes.

Packs and objects are written before the event that makes their blobs visible. Their names are the sha256 of the bytes
in them, so writing one again changes nothing, a crash in between leaves only garbage for gc, and one flipped bit shows.
(Older objects are named by their raw bytes.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

import zstandard

from agent_world.errors import BadInputError
from agent_world.identity import Digest, canonical_json, sha256
from agent_world.lake.errors import DamagedError, NotFoundError
from agent_world.lake.faults import reach
from agent_world.lake.storage import Storage
from agent_world.lake.tables import Index

FOLDER = "blobs"
OBJECT_BYTES = 1 << 20
"""From this size on a blob is an object of its own."""

_PACK_BYTES = 64 << 20  # a pack is written when it has grown to this
_COMPRESSION = 1


class Place(NamedTuple):
    """Where a blob lies; the columns of table `blobs`."""

    sha256: Digest
    pack: str
    offset: int
    stored_bytes: int
    raw_bytes: int
    codec: str


class Leaf(NamedTuple):
    """One file of a tree."""

    path: str
    sha256: Digest
    size: int


class BlobReader:
    """Reads blobs by their sha256."""

    def __init__(self, storage: Storage, places: Index) -> None:
        self._storage = storage
        self._places = places

    def place(self, digest: str) -> Place | None:
        """Where the blob lies, if the lake has it."""
        row = self._places.row(digest)
        return None if row is None else Place(**row)

    def read(self, digest: str) -> bytes:
        """The raw bytes, proved by their hash.

        Raises:
            NotFoundError: the lake has no such blob. DamagedError: its bytes are missing or wrong.
        """
        place = self.place(digest)
        if place is None:
            raise NotFoundError("blob", digest)
        return read_place(self._storage, place)


def read_place(storage: Storage, place: Place) -> bytes:
    """The raw bytes at `place`, proved by their hash.

    Raises:
        DamagedError: they are missing or wrong.
    """
    what = f"blob {place.sha256[:12]} in {place.pack}"
    try:
        stored = storage.read_range(place.pack, place.offset, place.stored_bytes)
    except FileNotFoundError as error:
        raise DamagedError(what, "the file is missing") from error
    try:
        raw = stored if place.codec == "raw" else _unpack(stored, place.raw_bytes)
    except zstandard.ZstdError as error:
        raise DamagedError(what, f"it does not decompress ({error})") from error
    if sha256(raw) != place.sha256:
        raise DamagedError(what, "the bytes do not have this sha256")
    return raw


class BlobWriter:
    """Collects the blobs of one batch; `flush` writes what is still pending. Known blobs are not written again."""

    def __init__(self, storage: Storage, known: Callable[[str], Place | None]) -> None:
        self._storage = storage
        self._known = known
        self._pack = bytearray()
        self._pending: dict[str, Place] = {}
        self._written: dict[str, Place] = {}

    @property
    def places(self) -> list[Place]:
        """What has been written, in order; all of it only after `flush`."""
        return list(self._written.values())

    def add(self, data: bytes) -> Digest:
        """Keep `data`; gives its key."""
        digest = sha256(data)
        if digest in self._written or digest in self._pending or self._known(digest):
            return digest
        stored, codec = _compressed(data)
        if len(data) >= OBJECT_BYTES:
            name = sha256(stored)
            key = f"{FOLDER}/objects/{name[:2]}/{name}.{codec}"
            self._store(key, stored)
            self._written[digest] = Place(digest, key, 0, len(stored), len(data), codec)
            return digest
        self._pending[digest] = Place(digest, "", len(self._pack), len(stored), len(data), codec)
        self._pack += stored
        if len(self._pack) >= _PACK_BYTES:
            self.flush()
        return digest

    def flush(self) -> None:
        """Write the pending pack."""
        if not self._pending:
            return
        pack = bytes(self._pack)
        name = hashlib.sha256(pack).hexdigest()
        key = f"{FOLDER}/packs/{name[:2]}/{name}"
        self._store(key, pack)
        self._written |= {digest: place._replace(pack=key) for digest, place in self._pending.items()}
        self._pack.clear()
        self._pending.clear()

    def _store(self, key: str, data: bytes) -> None:
        reach("blob_write")
        self._storage.write(key, data)


def tree(leaves: Iterable[Leaf]) -> tuple[Digest, list[Leaf]]:
    """The root of a tree and its leaves in path order.

    Raises:
        BadInputError: a path that leaves the tree, or two files with the same path.
    """
    ordered = sorted(leaves)
    for leaf in ordered:
        path = PurePosixPath(leaf.path)
        if path.is_absolute() or ".." in path.parts or str(path) != leaf.path or leaf.path in ("", "."):
            raise BadInputError(f"file {leaf.path!r}", "it is not a plain relative path", "use folder/name.ext")
    return sha256(canonical_json([list(leaf) for leaf in ordered])), ordered


def _compressed(data: bytes) -> tuple[bytes, str]:
    stored = zstandard.ZstdCompressor(level=_COMPRESSION).compress(data)
    return (stored, "zstd") if len(stored) < len(data) * 0.95 else (data, "raw")


def _unpack(stored: bytes, raw_bytes: int) -> bytes:
    return zstandard.ZstdDecompressor().decompress(stored, max_output_size=raw_bytes)
