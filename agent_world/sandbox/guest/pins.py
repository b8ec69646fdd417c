"""Makes time and chance inside a session depend on its seed and its own steps, and on nothing else.

Covers what generated code really uses: ``time``, ``datetime``, ``random``, ``uuid``, ``secrets``, ``os.urandom``, and
SQLite's clock and random functions (storage.py). Hash order and time zone are those of an empty environment.
Addresses (``id``, the hash and the text of a plain object) cannot be pinned: they differ from session to session, so
that whoever runs a tool twice sees that it uses them.
"""

from __future__ import annotations

import _locale
import ctypes
import datetime
import gc
import os
import random
import sys
import time
from collections.abc import Callable

START = datetime.datetime(2026, 1, 5, 9, 0, tzinfo=datetime.UTC)
_REAL_CLOCK = time.CLOCK_REALTIME
_STOPWATCHES = ("monotonic", "perf_counter", "process_time", "thread_time")
_BALLAST: tuple[Callable[[], object], ...] = (
    # One of each size that Python allocates small objects in, from 16 bytes on.
    object,
    lambda: float(_minutes + 1),
    *(lambda size=size: bytes(size) for size in range(2, 146, 16)),
)

_real_bytes = os.urandom
_minutes = 0
_readings = 0
_chance = random.Random(0)
_ballast: list[object] = []


def install() -> None:
    """Replace the sources of time and chance of this interpreter; sessions inherit it."""
    # Where the host has more locales than C, Python starts in one of them.
    _locale.setlocale(_locale.LC_ALL, "C")
    random._urandom = _bytes  # type: ignore[attr-defined]
    os.urandom = _bytes
    os.getrandom = lambda size, flags=0: _bytes(size)
    start = random.Random.seed
    random.Random.seed = lambda self, a=None, version=2: start(
        self, _chance.getrandbits(64) if a is None else a, version
    )
    random.seed = random._inst.seed  # type: ignore[attr-defined]
    sys.modules["_uuid"] = None  # type: ignore[assignment] - its clock is the kernel's; without it, `uuid` asks ours
    time.time = now  # type: ignore[assignment]
    time.time_ns = lambda: int(now()) * 10**9  # type: ignore[assignment]
    for name in _STOPWATCHES:
        setattr(time, name, lambda: _elapsed() / 10**6)
        setattr(time, f"{name}_ns", lambda: _elapsed() * 1000)
    time.clock_gettime = lambda clock: now() if clock == _REAL_CLOCK else _elapsed() / 10**6
    time.clock_gettime_ns = lambda clock: time.time_ns() if clock == _REAL_CLOCK else _elapsed() * 1000
    for name in ("gmtime", "localtime", "ctime"):
        setattr(time, name, _with_default(getattr(time, name)))
    strftime, asctime = time.strftime, time.asctime
    time.strftime = lambda form, t=None: strftime(form, time.gmtime() if t is None else t)  # type: ignore[assignment]
    time.asctime = lambda t=None: asctime(time.gmtime() if t is None else t)  # type: ignore[assignment]
    _replace(datetime.date, "today", lambda cls: cls.fromtimestamp(now()))
    _replace(datetime.datetime, "today", lambda cls: cls.fromtimestamp(now()))
    _replace(datetime.datetime, "utcnow", lambda cls: cls.fromtimestamp(now(), datetime.UTC).replace(tzinfo=None))
    _replace(datetime.datetime, "now", lambda cls, tz=None: cls.fromtimestamp(now(), tz))


def seed(value: int) -> None:
    """Start the session's chance, and move its objects to other addresses than those of its neighbours."""
    _chance.seed(value)
    random.seed(value)
    counts = _real_bytes(len(_BALLAST))
    _ballast.extend(make() for make, count in zip(_BALLAST, counts, strict=True) for _ in range(count % 16))


def tick() -> None:
    """A call changed the state: the clock moves on by one minute."""
    global _minutes
    _minutes += 1


def now() -> float:
    """Seconds since 1970 on the session's clock."""
    return START.timestamp() + 60 * _minutes


def _elapsed() -> int:
    """Microseconds on the session's stopwatch: one more at each reading, so that a loop that waits comes to an end."""
    global _readings
    _readings += 1
    return 60 * 10**6 * _minutes + _readings


def random_integer() -> int:
    """A signed 64-bit number, as SQLite's ``random()`` gives."""
    return _chance.getrandbits(64) - 2**63


def _bytes(count: int) -> bytes:
    return _chance.randbytes(count)


def _with_default(function: Callable) -> Callable:
    return lambda seconds=None: function(now() if seconds is None else seconds)


def _replace(cls: type, name: str, function: Callable) -> None:
    # A class of C takes no new attributes, and a subclass in its place would break isinstance on its own values.
    gc.get_referents(cls.__dict__)[0][name] = classmethod(function)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))
