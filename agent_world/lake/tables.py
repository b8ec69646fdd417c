"""All projections as they stood at one point: folded from events, kept in memory, carried forward as events arrive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from agent_world.lake.fold import Fold, ReadBlob, open_fold
from agent_world.lake.rows import spec_of


class Base(NamedTuple):
    """A projection as it was stored, and the `events` version up to which it had been folded."""

    folded_through: int
    table: pa.Table


class EventSource(Protocol):
    """Where the events of these tables come from."""

    def version(self) -> int:
        """The newest version there is."""
        ...

    def read(self, after: int, through: int) -> pa.Table:
        """Events with ``after < commit_version <= through``, in order."""
        ...


class Entry:
    """A fold, the `events` version it has seen, and what of it is stored as a projection."""

    def __init__(self, fold: Fold, through: int) -> None:
        self.fold = fold
        self.through = through
        self.stored_through: int | None = None if through < 0 else through
        self.stored_rows = fold.kept

    @property
    def settled(self) -> bool:
        """Whether the table as it stands is what is stored."""
        return self.stored_through is not None and self.fold.kept == self.stored_rows == self.fold.table().num_rows

    def settle(self) -> None:
        """Note that the table is stored as it stands."""
        self.fold.settle()
        self.stored_through, self.stored_rows = self.through, self.fold.kept


class Tables:
    """Gives every table as an Arrow table; folds only those that are asked for."""

    def __init__(self, events: EventSource, read_blob: ReadBlob, base: Callable[[str], Base | None]) -> None:
        self._events = events
        self._read_blob = read_blob
        self._base = base
        self._entries: dict[str, Entry] = {}
        self._lock = threading.RLock()

    def version(self) -> int:
        """The newest version of `events` that these tables can show."""
        return self._events.version()

    def table(self, name: str) -> pa.Table:
        """The table as it stands now.

        Raises:
            NotFoundError: there is no such table.
        """
        return self.entry(name).fold.table()

    def events(self) -> pa.Table:
        """Every event, in order."""
        return self._events.read(-1, self._events.version())

    def events_after(self, version: int, through: int) -> pa.Table:
        """Events with ``version < commit_version <= through``, in order."""
        return self._events.read(version, through)

    def entry(self, name: str) -> Entry:
        """The fold of a table, brought up to the newest version."""
        spec_of(name)
        with self._lock:
            version = self._events.version()
            entry = self._entries.get(name)
            if entry is None:
                base = self._base(name)
                through = -1 if base is None else base.folded_through
                fold = open_fold(name, None if base is None else base.table, self._read_blob)
                entry = self._entries[name] = Entry(fold, through)
            if entry.through < version:
                events = self._events.read(entry.through, version)
                if events.num_rows:
                    entry.fold.apply(events)
                entry.through = version
            return entry


class Index:
    """Finds the row of a key in a table that only grows."""

    def __init__(self, table: Callable[[], pa.Table], key: str) -> None:
        self._table = table
        self._key = key
        self._rows: dict[str, int] = {}

    def row(self, key: str) -> dict[str, Any] | None:
        """The row with this key, if there is one now."""
        table = self._table()
        seen = len(self._rows)
        if seen < table.num_rows:
            fresh = table.column(self._key).slice(seen).to_pylist()
            self._rows.update(zip(fresh, range(seen, table.num_rows), strict=True))
        place = self._rows.get(key)
        return None if place is None else table.slice(place, 1).to_pylist()[0]
