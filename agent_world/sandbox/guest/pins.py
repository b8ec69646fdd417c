"""Makes time and chance inside a session depend on its seed and its own steps, and on nothing else.

Covers what generated code really uses: ``time``, ``datetime``, ``random``, ``uuid``, ``secrets``, ``os.urandom``, and
SQLite's clock and random functions (storage.py). Addresses (``id``) cannot be pinned; the tool gate detects their use.
"""

from __future__ import annotations

import ctypes
import datetime
import gc
import os
import random
import time
from collections.abc import Callable

START = datetime.datetime(2026, 1, 5, 9, 0, tzinfo=datetime.UTC)
_minutes = 0
_chance = random.Random(0)


def install() -> None:
    """Replace the sources of time and chance of this interpreter; sessions inherit it."""
    random._urandom = _bytes  # type: ignore[attr-defined]
    os.urandom = _bytes
    time.time = now  # type: ignore[assignment]
    time.time_ns = lambda: int(now()) * 10**9  # type: ignore[assignment]
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
    """Start the session's chance."""
    _chance.seed(value)
    random.seed(value)


def tick() -> None:
    """A call changed the state: the clock moves on by one minute."""
    global _minutes
    _minutes += 1


def now() -> float:
    """Seconds since 1970 on the session's clock."""
    return START.timestamp() + 60 * _minutes


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
