"""The files that blobs lie in, proved while their bytes pass by: each file by its name, each blob by its sha256."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

import pyarrow as pa
import zstandard

from agent_world.identity import Digest, sha256
from agent_world.lake.blobs import FOLDER, OBJECT_BYTES, Place
from agent_world.lake.pieces import PIECE_BYTES, pieces
from agent_world.lake.storage import Storage

_STEP = 4 << 10
"""Bytes decompressed at once: 4 KB cannot grow to more than some 100 MB, whoever wrote them."""

_ANY = 1 << 62
_LARGEST = 64 << 20
"""No manifest is larger: about 200,000 batches."""


class FileProof:
    """Proves one pack or object. Let its bytes pass through `of`, then ask."""

    def __init__(self, key: str, places: Iterable[Place]) -> None:
        self._key = key
        self._whole = hashlib.sha256()
        self._size = 0
        self._blobs = [_Blob(place) for place in sorted(places, key=lambda place: place.offset)]
        self._open = 0

    def of(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The same pieces, looked at."""
        for part in parts:
            self._whole.update(part)
            self._spread(memoryview(part))
            self._size += len(part)
            yield part

    def damaged(self) -> list[Place]:
        """The blobs whose bytes do not have their sha256."""
        return [blob.place for blob in self._blobs if not blob.whole()]

    def why(self) -> str | None:
        """What is wrong with the file; None when nothing is."""
        damaged = self.damaged()
        if damaged:
            shown = ", ".join(place.sha256[:12] for place in damaged[:3])
            more = f" and {len(damaged) - 3} more" if len(damaged) > 3 else ""
            return f"{len(damaged)} of its {len(self._blobs)} blobs do not have their sha256: {shown}{more}"
        name = PurePosixPath(self._key).name.partition(".")[0]
        by_raw = any(
            blob.place.sha256 == name and blob.place.stored_bytes in (self._size, _ANY) for blob in self._blobs
        )
        return None if by_raw or self._whole.hexdigest() == name else "its bytes do not have the sha256 in its name"

    def _spread(self, part: memoryview) -> None:
        while self._open < len(self._blobs):
            blob = self._blobs[self._open]
            start = max(blob.place.offset - self._size, 0)
            stop = blob.place.offset + blob.place.stored_bytes - self._size
            if start >= len(part):
                return
            blob.feed(part[start : max(start, stop)])
            if stop > len(part):
                return
            self._open += 1


class _Blob:
    """One blob, unpacked as its bytes come."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._raw = hashlib.sha256()
        self._left = place.raw_bytes
        self._unpack = zstandard.ZstdDecompressor().decompressobj() if place.codec == "zstd" else None
        self._broken = False

    def feed(self, part: memoryview) -> None:
        if self._unpack is None:
            self._raw.update(part)
            return
        for start in range(0, len(part), _STEP):
            if self._broken:
                return
            try:
                raw = self._unpack.decompress(part[start : start + _STEP])
            except zstandard.ZstdError:
                self._broken = True
                return
            self._raw.update(raw)
            self._left -= len(raw)
            self._broken = self._left < 0

    def whole(self) -> bool:
        return not self._broken and self._raw.hexdigest() == self.place.sha256


def places_by_file(blobs: pa.Table) -> dict[str, list[Place]]:
    """The places of the table `blobs` by the file they lie in, files in order."""
    found: dict[str, list[Place]] = defaultdict(list)
    for row in blobs.to_pylist():
        found[row["pack"]].append(Place(**row))
    return dict(sorted(found.items()))


def sizes(storage: Storage) -> dict[str, int]:
    """The size of every file of blobs by its key."""
    return {item.key: item.size for item in storage.list(FOLDER)}


def prove(storage: Storage, key: str, size_bytes: int | None, places: Sequence[Place]) -> FileProof | None:
    """Read a file through; None when it is missing."""
    if size_bytes is None:
        return None
    proof = FileProof(key, places)
    try:
        for _ in proof.of(pieces(storage, key, size_bytes)):
            pass
    except FileNotFoundError:
        return None
    return proof


def prove_by_name(storage: Storage, key: str, size_bytes: int) -> bool:
    """Whether a file is whole, for when the events that say what lies in it cannot be read."""
    proof = prove(storage, key, size_bytes, ())
    if proof is None or proof.why() is None:
        return proof is not None
    path = PurePosixPath(key)  # an object named by its raw bytes?
    raw = prove(storage, key, size_bytes, [Place(Digest(path.stem), key, 0, _ANY, _ANY, path.suffix[1:])])
    return raw is not None and raw.why() is None


def find(storage: Storage, digest: str) -> bytes | None:
    """The blob whose sha256 begins with `digest`, when a file holds it and nothing else, as that of a manifest does."""
    for key, size in sizes(storage).items():
        try:
            stored = storage.read(key) if size <= OBJECT_BYTES + PIECE_BYTES else b""
            raws = [stored, zstandard.ZstdDecompressor().decompress(stored, max_output_size=_LARGEST)]
        except (zstandard.ZstdError, FileNotFoundError):
            raws = [stored]
        for raw in raws:
            if sha256(raw).startswith(digest):
                return raw
    return None
