"""Rebuild every projection from the events in a new place, swap it in at once, and say whether anything differed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_world.identity import Digest
from agent_world.lake.digest import table_digest
from agent_world.lake.errors import LakeBusyError
from agent_world.lake.log import EventLog
from agent_world.lake.moments import Prefix
from agent_world.lake.tables import Base, Tables
from lake_schemas import TABLES

if TYPE_CHECKING:
    from agent_world.lake.lake import Lake


class Replayed(NamedTuple):
    """One rebuilt table; `before` is the digest of what readers saw, None when it was not asked for."""

    table: str
    rows: int
    digest: Digest | None
    before: Digest | None

    @property
    def same(self) -> bool:
        """Whether the rebuilt table is what readers saw."""
        return self.digest == self.before


def replay(lake: Lake, *, verify: bool = False) -> list[Replayed]:
    """Fold all events anew into a new generation of projections and make it the one in use.

    Every event is read from the store again. With `verify` each table is compared, by logical digest over all its
    columns, with what readers saw until now: the stored projection and the tail folded onto it.

    Raises:
        LakeBusyError: another replay, or gc, is at work.
    """
    with lake.in_flight():  # to gc a generation that is not in use yet looks like one that is no longer
        return rebuild(lake, verify=verify)


def rebuild(lake: Lake, *, verify: bool = False) -> list[Replayed]:
    """As `replay`, for a caller that keeps gc away by itself.

    Raises:
        LakeBusyError: another replay is at work.
    """
    log = EventLog(lake.storage)
    events = Prefix(log, log.version())
    rebuilt = Tables(events, lake.blobs.read, lambda name: None)
    seen = Tables(events, lake.blobs.read, lambda name: _until(lake.projections.base(name), events.version()))
    with lake.storage.exclusive("replay") as held:
        if not held:
            raise LakeBusyError(lake.uri, "another replay is at work")
        generation = lake.projections.next_generation()
        results = []
        for name, spec in TABLES.items():
            entry = rebuilt.entry(name)
            table = entry.fold.table()
            digest = table_digest(spec, table, volatile=True) if verify else None
            before = table_digest(spec, seen.table(name), volatile=True) if verify else None
            lake.projections.save(name, entry, generation)
            results.append(Replayed(name, table.num_rows, digest, before))
        lake.projections.use(generation)
    return results


def _until(base: Base | None, version: int) -> Base | None:
    """A stored projection, unless it is ahead of the version that is compared."""
    return base if base is not None and base.folded_through <= version else None
