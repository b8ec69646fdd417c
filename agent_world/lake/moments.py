"""Points in the history of a lake: a snapshot, a time, or a version of the events table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_world.lake.errors import NotFoundError, near
from agent_world.lake.runs import gathered, starts_of
from agent_world.lake.tables import EventSource

if TYPE_CHECKING:
    from agent_world.lake.view import View

At = str | int | datetime
"""A snapshot id (or a unique start of one), an ISO time, an aware datetime, or a version of the events table."""


class Moment(NamedTuple):
    """A point in history: `key` names it, `events` are what had happened by then."""

    key: str
    events: EventSource


class Prefix:
    """Everything up to one version."""

    def __init__(self, log: EventSource, through: int) -> None:
        self._log = log
        self._through = through

    def version(self) -> int:
        """The version of the point."""
        return self._through

    def read(self, after: int, through: int) -> pa.Table:
        """Events with ``after < commit_version <= through``, in order."""
        return self._log.read(after, min(through, self._through))


class Pinned:
    """Exactly the batches of a snapshot, in its order, wherever they lie in this lake."""

    def __init__(self, log: EventSource, batches: Sequence[str]) -> None:
        self._log = log
        self._batches = pa.array(batches, type=pa.string())
        self._through = log.version()

    def version(self) -> int:
        """The version of this lake that holds all of them."""
        return self._through

    def read(self, after: int, through: int) -> pa.Table:
        """All events of the batches; a pinned set has no parts."""
        if after >= 0:
            return self._log.read(through, through)
        events = self._log.read(-1, self._through)
        places = pc.fill_null(pc.index_in(events.column("batch"), value_set=self._batches), -1).to_numpy()
        if not len(places):
            return events
        # As slices of `events`: each table that is folded asks, and a copy of the whole log each time is dear.
        starts = starts_of(np.diff(places))
        stops = np.append(starts[1:], len(places))
        order = np.argsort(places[starts], kind="stable")
        order = order[places[starts[order]] >= 0]
        return gathered(events, starts[order], stops[order])


def moment(lake: View, at: At) -> Moment:
    """The point that `at` means.

    Raises:
        NotFoundError: there is none.
    """
    if isinstance(at, int):
        return _version(lake, at)
    if isinstance(at, datetime):
        return _time(lake, at)
    from agent_world.lake.snapshots import ids, manifest_of, matching, named

    if matching(lake, at):
        exact = named(lake, at)
        return Moment(exact, Pinned(lake.log, [batch["batch"] for batch in manifest_of(lake, exact)["batches"]]))
    if at.isdecimal() and len(at) < 6:
        return _version(lake, int(at))
    try:
        return _time(lake, datetime.fromisoformat(at))
    except ValueError:
        why = f"{at!r} is neither a snapshot of this lake, nor an ISO time, nor a version of events"
        raise NotFoundError("snapshot", at, near(at, ids(lake)), why) from None


def _version(lake: View, version: int) -> Moment:
    newest = lake.log.version()
    if not 0 <= version <= newest:
        raise NotFoundError("version", str(version), why=f"events has versions 0 to {newest}, not {version}")
    return Moment(f"v{version}", Prefix(lake.log, version))


def _time(lake: View, time: datetime) -> Moment:
    """The last version that was complete at `time`; a time without zone is UTC."""
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    commits = lake.table("batches").group_by("commit_version").aggregate([("committed_at", "max")])
    by_then = commits.filter(pc.field("committed_at_max") <= pa.scalar(time, pa.timestamp("us", tz="UTC")))
    version = pc.max(by_then.column("commit_version")).as_py()
    return Moment(f"v{version or 0}", Prefix(lake.log, version or 0))
