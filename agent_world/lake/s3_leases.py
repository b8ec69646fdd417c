"""Locks in a bucket: objects that their holder writes again while it lives, and that hold nobody once it has stopped.

How old one is says the store, in one answer: its clock when it answered less its clock at the last write. Clocks of
the hosts play no part. A holder that was stopped for longer than a lease and goes on is refused where it matters: by
the compare-and-swap of the commit it is about to make.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, Protocol

from agent_world.lake.errors import StoreError
from agent_world.lake.storage import Stored

EXPIRES = timedelta(minutes=5)
"""A lock that was not written again for so long holds nobody."""

_RENEW_S = 60.0
_log = logging.getLogger(__name__)


class Seen(NamedTuple):
    """An object as one answer of the store shows it."""

    data: bytes
    tag: str
    age: timedelta


class Objects(Protocol):
    """What locks need of a bucket."""

    def see(self, key: str) -> Seen | None:
        """The object, its tag and its age by the store's clock; None when there is none."""
        ...

    def put(self, key: str, data: bytes, *, over: str = "") -> str | None:
        """Write a new object, or over the one with this tag; its tag, None when another one was there."""
        ...

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """Every object below a folder."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object."""
        ...


@contextmanager
def shared(objects: Objects, name: str) -> Iterator[bool]:
    """Hold `name` together with others."""
    # First our mark, then the look at the other side; `exclusive` does it the other way round: one of us sees.
    with _Lease(objects, f"locks/{name}/shared/{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}") as lease:
        lease.take()
        yield not _alive(objects.see(f"locks/{name}/exclusive"))


@contextmanager
def exclusive(objects: Objects, name: str) -> Iterator[bool]:
    """Hold `name` alone."""
    with _Lease(objects, f"locks/{name}/exclusive") as lease:
        yield lease.take() and not _any_alive(objects, f"locks/{name}/shared")


class _Lease:
    """One lock object; whoever leaves the ``with`` block holds it no longer."""

    def __init__(self, objects: Objects, key: str) -> None:
        self._objects, self._key = objects, key
        self._mark = {**_me(), "lease": secrets.token_hex(8)}
        self._tag: str | None = None
        self._times = 0
        self._sure_until = 0.0  # on our monotonic clock: nobody can have taken it before
        self._over = threading.Event()
        self._renewing = threading.Thread(target=self._renew, daemon=True)

    def take(self) -> bool:
        """Take the lock unless a living holder has it."""
        if not self._write(over="") and not self._take_over():
            return False
        self._renewing.start()
        return True

    def _take_over(self) -> bool:
        seen = self._objects.see(self._key)
        if seen is None:
            return self._write(over="")
        return not _alive(seen) and self._write(over=seen.tag)

    def _write(self, *, over: str) -> bool:
        before = time.monotonic()
        self._times += 1  # the tag of an object may say no more than its bytes: each writing has others
        data = json.dumps({**self._mark, "times": self._times}).encode()
        self._tag = self._objects.put(self._key, data, over=over)
        if self._tag is not None:
            self._sure_until = before + EXPIRES.total_seconds() / 2
        return self._tag is not None

    def _renew(self) -> None:
        while self._tag is not None and not self._over.wait(_RENEW_S):
            try:
                self._write(over=self._tag)
            except StoreError as error:
                _log.warning("the lock %s was not renewed (%s)", self._key, error)

    def __enter__(self) -> _Lease:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._renewing.is_alive() and self._tag is None:
            return
        self._over.set()
        self._renewing.join()
        try:
            if self._tag is not None and (time.monotonic() < self._sure_until or self._is_mine()):
                self._objects.delete(self._key)
        except StoreError as error:  # what was done under the lock is done, and the lock expires
            _log.warning("the lock %s was left behind (%s); it expires by itself", self._key, error)

    def _is_mine(self) -> bool:
        seen = self._objects.see(self._key)
        return seen is not None and json.loads(seen.data)["lease"] == self._mark["lease"]


def _any_alive(objects: Objects, folder: str) -> bool:
    for item in objects.list(folder):
        seen = objects.see(item.key)
        if _alive(seen):
            return True
        if seen is not None:
            objects.delete(item.key)
    return False


def _alive(seen: Seen | None) -> bool:
    """Whether somebody who may still live holds the lock."""
    if seen is None or seen.age >= EXPIRES:
        return False
    holder = json.loads(seen.data)
    return holder.get("where") != _where() or _runs(holder["pid"], holder["started"])


def _me() -> dict[str, str | int | float]:
    pid = os.getpid()
    return {"host": socket.gethostname(), "where": _where(), "pid": pid, "started": _started(pid)}


def _where() -> str:
    """Where a process number means the same process: this boot of this machine, seen from this pid namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> float:
    import psutil

    return round(psutil.Process(pid).create_time(), 1)


def _runs(pid: int, started: float) -> bool:
    import psutil

    try:
        return _started(pid) == started and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
