"""The one layer under tables, blobs and snapshots: a directory here, ``s3://`` in agent_world/lake/s3.py.

Keys are relative paths with ``/``. A write is atomic and durable when it returns: readers see all of it or nothing.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from agent_world.lake.errors import NotALakeError, blame_full_disk, without_userinfo

T = TypeVar("T")


class Stored(NamedTuple):
    """One object of a listing."""

    key: str
    size: int
    modified: datetime


class Storage(Protocol):
    """What a lake needs of the place it lives in."""

    uri: str

    @property
    def options(self) -> dict[str, str] | None:
        """Options that delta-rs needs to reach the same place."""
        ...

    def table_uri(self, key: str) -> str:
        """The address of the Delta table at `key`."""
        ...

    def check(self) -> None:
        """See that a lake is safe in this place.

        Raises:
            UnsafeStoreError: of two writers at once, both could believe that they won.
        """
        ...

    def discreet(self) -> AbstractContextManager[None]:
        """Keep credentials out of what an engine raises that was given `options`.

        Raises:
            StoreFailedError: the place failed.
        """
        ...

    def patient(self, work: Callable[[], T]) -> T:
        """What an engine does that was given `options`; done again, and discreet, when the place failed.

        It must be such that doing it twice is as good as once.

        Raises:
            StoreFailedError: it failed each time.
        """
        ...

    def read(self, key: str) -> bytes:
        """All bytes of an object.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def read_range(self, key: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def write(self, key: str, data: bytes) -> None:
        """Write or replace an object."""
        ...

    def write_from(self, key: str, parts: Iterable[bytes]) -> None:
        """Write or replace an object piece by piece; when `parts` raises, nothing of it is seen."""
        ...

    def write_new(self, key: str, data: bytes) -> bool:
        """Write an object unless there is one; False when there was."""
        ...

    def exists(self, key: str) -> bool:
        """Whether there is an object at `key`."""
        ...

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """Every object whose key starts with the folder `prefix`, in key order."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; nothing happens when there is none."""
        ...

    def sync(self, *keys: str) -> None:
        """Make objects that an engine wrote durable."""
        ...

    def shared(self, name: str) -> AbstractContextManager[bool]:
        """Hold `name` together with others; False while somebody holds it exclusively."""
        ...

    def exclusive(self, name: str) -> AbstractContextManager[bool]:
        """Hold `name` alone; False when anybody holds it. A holder that died holds nothing."""
        ...


class Directory:
    """A lake in a local directory. Bytes reach the disk (fsync) before they become visible."""

    def __init__(self, root: Path) -> None:
        if root.exists() and not root.is_dir():
            raise NotALakeError(str(root), "it is a file")
        self.root = root.absolute()
        self.uri = str(root)

    @property
    def options(self) -> None:
        """delta-rs needs none."""

    def table_uri(self, key: str) -> str:
        """The address of the Delta table at `key`."""
        return str(self.root / key)

    def check(self) -> None:
        """A file system links a new name once."""

    def discreet(self) -> AbstractContextManager[None]:
        """There are no credentials."""
        return nullcontext()

    def patient(self, work: Callable[[], T]) -> T:
        """A disk that failed once fails again."""
        return work()

    def read(self, key: str) -> bytes:
        """All bytes of a file."""
        return (self.root / key).read_bytes()

    def read_range(self, key: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`."""
        with (self.root / key).open("rb") as file:
            return os.pread(file.fileno(), length, offset)

    def write(self, key: str, data: bytes) -> None:
        """Write a file aside, then rename it into place."""
        self.write_from(key, [data])

    def write_from(self, key: str, parts: Iterable[bytes]) -> None:
        """Write a file aside piece by piece, then rename it into place."""
        with self._aside(key, parts) as aside:
            aside.replace(self.root / key)

    def write_new(self, key: str, data: bytes) -> bool:
        """Write a file aside, then link it into place: exactly one of several racing writers succeeds."""
        try:
            with self._aside(key, [data]) as aside:
                os.link(aside, self.root / key)
        except FileExistsError:
            return False
        return True

    def exists(self, key: str) -> bool:
        """Whether there is a file at `key`."""
        return (self.root / key).exists()

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """Every file below the folder `prefix`, in key order."""
        for folder, folders, names in os.walk(self.root / prefix):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                with suppress(FileNotFoundError):  # somebody removed it while we looked
                    status = path.stat()
                    modified = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield Stored(path.relative_to(self.root).as_posix(), status.st_size, modified)

    def delete(self, key: str) -> None:
        """Remove a file."""
        (self.root / key).unlink(missing_ok=True)

    def sync(self, *keys: str) -> None:
        """Fsync files and the folders that name them."""
        paths = [self.root / key for key in keys]
        for path in [*paths, *dict.fromkeys(path.parent for path in paths)]:
            _sync(path)

    @contextmanager
    def shared(self, name: str) -> Iterator[bool]:
        """Hold `name` together with others."""
        with self._lock(name, fcntl.LOCK_SH) as held:
            yield held

    @contextmanager
    def exclusive(self, name: str) -> Iterator[bool]:
        """Hold `name` alone."""
        with self._lock(name, fcntl.LOCK_EX) as held:
            yield held

    @contextmanager
    def _lock(self, name: str, kind: int) -> Iterator[bool]:
        path = self.root / "locks" / name
        with blame_full_disk(self.uri, f"locks/{name}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a")
        with file:
            try:
                fcntl.flock(file, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                try:
                    yield True  # the kernel frees the lock when we are killed
                finally:
                    fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough: a child forked meanwhile has the file too

    @contextmanager
    def _aside(self, key: str, parts: Iterable[bytes]) -> Iterator[Path]:
        path = self.root / key
        with blame_full_disk(self.uri, key):
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.aside")
            try:
                with aside.open("xb") as file:
                    file.writelines(parts)
                    file.flush()
                    os.fsync(file.fileno())
                yield aside
                _sync(path.parent)
            finally:
                aside.unlink(missing_ok=True)


def open_storage(uri: str | Path) -> Storage:
    """The storage behind `uri`: ``s3://bucket/prefix``, or a directory."""
    text = str(uri)
    if "://" in text and "@" in urlsplit(text).netloc:
        why = "it names a user or a password; keys go into AWS variables or a profile (docs/s3.md)"
        raise NotALakeError(without_userinfo(text), why)
    if text.startswith("s3://"):
        from agent_world.lake.s3 import Bucket

        return Bucket(text)
    if "://" in text and not text.startswith("file://"):
        raise NotALakeError(text, "only directories and s3:// are supported")
    return Directory(Path(text.removeprefix("file://")))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
