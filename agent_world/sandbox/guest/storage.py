"""SQLite over two descriptors: a sealed snapshot that all sessions share, and the session's private write-ahead log.

The snapshot can never be written, so nothing is copied when a session starts; what the session changes is in its log,
where the supervisor reads it. A checkpoint fails at the seal. SQLite opens files by path only, so its own `open` is
replaced for the two names of a database.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sqlite3

import pins

_LIBRARY = "libsqlite3.so.0"
_VFS_NAMES = (b"unix", b"unix-none")
_JULIAN_1970_MS = 210866760000000
# Exists, read-only, in every session: SQLite takes the mode of a log from the file it belongs to.
_DATABASE_PATH = "/guest/database"

_Open = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, use_errno=True)
_Clock = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))


class _Vfs(ctypes.Structure):
    """`struct sqlite3_vfs`, version 3."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("max_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in ("open", "delete", "access", "full_path")),
        *((name, ctypes.c_void_p) for name in ("dl_open", "dl_error", "dl_sym", "dl_close")),
        *((name, ctypes.c_void_p) for name in ("randomness", "sleep", "current_time", "last_error")),
        ("current_time_ms", _Clock),
        ("set_system_call", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)),
        *((name, ctypes.c_void_p) for name in ("get_system_call", "next_system_call")),
    )


_descriptors: dict[bytes, int] = {}


@_Open
def _open(path: bytes, flags: int, mode: int) -> int:
    try:
        descriptor = _descriptors.get(path)
        return os.dup(descriptor) if descriptor is not None else os.open(path, flags, mode)
    except OSError as error:
        ctypes.set_errno(error.errno or errno.EIO)
        return -1


@_Clock
def _clock(_vfs: int, result: ctypes._Pointer) -> int:
    result[0] = _JULIAN_1970_MS + int(pins.now() * 1000)
    return 0


def install() -> None:
    """Teach this process's SQLite to open `_DATABASE_PATH` by descriptor and to read the session's clock."""
    library = ctypes.CDLL(_LIBRARY)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    for name in _VFS_NAMES:
        vfs = library.sqlite3_vfs_find(name)
        vfs.contents.current_time_ms = _clock
        vfs.contents.set_system_call(ctypes.addressof(vfs.contents), b"open", ctypes.cast(_open, ctypes.c_void_p))


def connect(snapshot: int, log: int) -> sqlite3.Connection:
    """The database of these two descriptors, in autocommit mode."""
    _descriptors[_DATABASE_PATH.encode()] = snapshot
    _descriptors[f"{_DATABASE_PATH}-wal".encode()] = log
    # Sessions share the snapshot's inode, so POSIX locks would make them wait for each other: `unix-none` takes none,
    # and a log without shared memory needs the exclusive mode.
    db = sqlite3.connect(f"file:{_DATABASE_PATH}?vfs=unix-none", uri=True, isolation_level=None)
    db.row_factory = sqlite3.Row
    db.executescript(
        "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=0; PRAGMA temp_store=MEMORY;"
        # Nothing is in the log that was not committed, so its length before a commit tells whether the commit came.
        "PRAGMA cache_spill=OFF"
    )
    return db


def look(snapshot: int) -> sqlite3.Connection:
    """The database of this descriptor, which nobody can write, to read."""
    path = f"{_DATABASE_PATH}-{snapshot}"
    _descriptors[path.encode()] = snapshot
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    db.row_factory = sqlite3.Row
    return db
