"""The only thing that removes files: garbage of crashes, compacted files, projections out of use. Never what is pinned.

It holds the lake alone, so no batch is in flight, and takes nothing younger than the grace period. Events, and blobs
that an event names, are never garbage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from agent_world.lake import blobs, projections, snapshots
from agent_world.lake.errors import DamagedError, LakeBusyError, NotFoundError
from agent_world.lake.faults import reach
from agent_world.lake.log import FOLDER
from agent_world.lake.rows import having

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from agent_world.lake.lake import Lake

GRACE = timedelta(days=7)


class Garbage(NamedTuple):
    """One file that nothing needs."""

    key: str
    size: int
    why: str


def gc(lake: Lake, *, grace: timedelta = GRACE, dry_run: bool = True) -> list[Garbage]:
    """Find garbage older than `grace` and, unless `dry_run`, remove it.

    Raises:
        LakeBusyError: a batch is in flight. DamagedError: a pin cannot be read, so that nothing may be removed.
    """
    from agent_world.lake.lake import IN_FLIGHT

    with lake.storage.exclusive(IN_FLIGHT) as held:
        if not held:
            raise LakeBusyError(lake.uri, "a batch is in flight")
        fresh = type(lake)(lake.storage)
        pinned = pins(fresh)
        found = [*_blobs(fresh), *_projections(fresh), *_aside(fresh)]
        oldest = datetime.now(UTC) - grace
        garbage = [item.garbage for item in found if item.modified < oldest]
        garbage += _compacted(fresh, pinned, grace, dry_run)
        if not dry_run:
            for item in garbage:
                fresh.storage.delete(item.key)
                reach("gc_delete")
            _check(fresh, pinned)
        return garbage


class _Old(NamedTuple):
    garbage: Garbage
    modified: datetime


class Pin(NamedTuple):
    """Files of `events` that a snapshot needs at a version."""

    version: int
    files: list[str]


def pins(lake: Lake) -> list[Pin]:
    """What snapshots pin of the files here; an imported snapshot pins batches, which are never removed.

    Raises:
        DamagedError: a pin cannot be read.
    """
    found = []
    there = {item.key for item in lake.storage.list(FOLDER)}
    for snapshot in snapshots.ids(lake):
        try:
            manifest = snapshots.manifest_of(lake, snapshot)
        except NotFoundError as error:
            raise DamagedError(f"snapshot {snapshot[:12]}", "its manifest is missing") from error
        files = [f"{FOLDER}/{file['path']}" for file in manifest["files"]]
        here = [file for file in files if file in there]
        if here:
            found.append(Pin(manifest["events_version"], here))
    return found


def _blobs(lake: Lake) -> Iterator[_Old]:
    named = {place[1] for payload in _stored(lake) for place in payload["blobs"]}
    for item in lake.storage.list(blobs.FOLDER):
        if item.key not in named:
            yield _Old(Garbage(item.key, item.size, "no event names it"), item.modified)


def _stored(lake: Lake) -> Iterator[Mapping[str, Any]]:
    """Where batches put their blobs: all of it, as a snapshot may pin a place that another batch knew before."""
    for payload in having(lake.table("events"), event_type="stored").column("payload").to_pylist():
        yield json.loads(payload)


def _projections(lake: Lake) -> Iterator[_Old]:
    used = lake.projections.generation()
    for item in lake.storage.list(projections.FOLDER):
        if item.key != projections.POINTER and item.key.split("/")[1] != used:
            yield _Old(Garbage(item.key, item.size, "a projection out of use"), item.modified)


def _aside(lake: Lake) -> Iterator[_Old]:
    for item in lake.storage.list():
        name = PurePosixPath(item.key).name
        if name.startswith(".") and name.endswith(".aside") and not item.key.startswith(blobs.FOLDER):
            yield _Old(Garbage(item.key, item.size, "left by a writer that died"), item.modified)


def _compacted(lake: Lake, pinned: list[Pin], grace: timedelta, dry_run: bool) -> Iterator[Garbage]:
    """Files of Delta tables that no version in use names: only delta-rs knows which."""
    yield from _vacuum(lake, FOLDER, lake.log.handle(), grace, dry_run, sorted({pin.version for pin in pinned}))
    for name, table in lake.projections.tables():
        yield from _vacuum(lake, name, table, grace, dry_run, [])


def _vacuum(
    lake: Lake, folder: str, table: DeltaTable, grace: timedelta, dry_run: bool, keep: list[int]
) -> Iterator[Garbage]:
    sizes = {item.key: item.size for item in lake.storage.list(folder)}
    removed = lake.storage.patient(
        lambda: table.vacuum(
            retention_hours=int(grace.total_seconds() // 3600),
            dry_run=dry_run,
            enforce_retention_duration=False,
            full=True,  # the default does not see files of writers that died
            keep_versions=keep or None,
        )
    )
    for key in (f"{folder}/{unquote(path)}" for path in removed):
        if key in sizes:  # delta-rs names files again that are gone already
            yield Garbage(key, sizes[key], "rewritten since, or left by a writer that died")


def _check(lake: Lake, pinned: list[Pin]) -> None:
    there = {item.key for item in lake.storage.list(FOLDER)}
    for pin in pinned:
        for key in pin.files:
            if key not in there:
                raise DamagedError(key, f"gc removed a file pinned at version {pin.version}")
