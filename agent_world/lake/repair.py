"""Makes a damaged lake usable: what can be made anew is, the rest is moved aside and named. Nothing is ever deleted."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from deltalake import WriterProperties, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from agent_world.identity import canonical_json, sha256
from agent_world.lake import blob_files
from agent_world.lake.damage import STAND_IN, Damage, examine
from agent_world.lake.delta_log import log_key
from agent_world.lake.errors import DamagedError, LakeBusyError
from agent_world.lake.faults import reach
from agent_world.lake.lake import IN_FLIGHT, MARK, MARKER, Lake
from agent_world.lake.log import FOLDER, EventLog
from agent_world.lake.pieces import pieces
from agent_world.lake.projections import POINTER
from agent_world.lake.proof import OnProgress, silent
from agent_world.lake.replay import rebuild
from agent_world.lake.storage import Directory

if TYPE_CHECKING:
    from agent_world.lake.storage import Storage

ASIDE = "quarantine"
"""Folder of the lake that damaged files are moved to, under a number for each repair."""

STAGE = "repair"
_SHOWN = 3


class Line(NamedTuple):
    """One thing that is wrong, and what repair does about it; `lost` says that it cannot be made good."""

    what: str
    why: str
    cure: str
    lost: bool


class Repaired(NamedTuple):
    """What was wrong, and how much can be read when all is done."""

    lines: list[Line]
    batches: int
    versions: int
    aside: str | None
    """Where the damaged files lie now; None when nothing was moved."""


def repair(
    storage: Storage, *, dry_run: bool = True, backup: Lake | None = None, on_progress: OnProgress = silent
) -> Repaired:
    """Find what is wrong with the lake in `storage` and, unless `dry_run`, put right what can be put right.

    Projections, checkpoints and ``lake.json`` are made anew; a damaged commit is replaced by an empty one; events are
    taken from files that a compaction left behind, and from `backup`, as blobs are. The rest is moved aside and named.

    Raises:
        NotALakeError: there is nothing like a lake. LakeFromNewerVersionError: newer code wrote it.
        LakeBusyError: a batch is in flight.
    """
    if dry_run:
        damage = examine(storage, backup, on_progress=on_progress)
        return Repaired(_lines(damage), damage.batches, damage.versions, None)
    with storage.exclusive(IN_FLIGHT) as held:
        if not held:
            raise LakeBusyError(storage.uri, "a batch is in flight")
        damage = examine(storage, backup, on_progress=on_progress)
        if not damage.any:
            return Repaired([], damage.batches, damage.versions, None)
        aside = _Aside(storage)
        _write_marker(storage, damage, aside)
        _mend_log(storage, damage, aside)
        _mend_blobs(storage, damage, aside, backup)
        aside.move(*(key for key in damage.projections if key == POINTER))
        lake = Lake(storage)
        lines = [*_lines(damage), *_fold_anew(lake, damage)]
    _record(lake, lines)
    return Repaired(lines, damage.batches, damage.versions, aside.used)


class _Aside:
    """Where damaged files go."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._sizes = {item.key: item.size for item in storage.list()}
        numbers = [int(key.split("/")[1]) for key in self._sizes if key.startswith(f"{ASIDE}/")]
        self._folder = f"{ASIDE}/{max(numbers, default=0) + 1:04}"
        self.used: str | None = None

    def keep(self, key: str) -> None:
        """Keep a copy of a file, if there is one."""
        if key in self._sizes:
            self._storage.write_from(f"{self._folder}/{key}", pieces(self._storage, key, self._sizes[key]))
            self.used = self._folder

    def move(self, *keys: str) -> None:
        """Move files away; first the copies, so that a stop in between loses nothing."""
        for key in keys:
            self.keep(key)
            reach("repair")
            if key in self._sizes:
                self._storage.delete(key)


def _write_marker(storage: Storage, damage: Damage, aside: _Aside) -> None:
    if damage.marker:
        aside.keep(MARKER)
        storage.write(MARKER, MARK)


def _mend_log(storage: Storage, damage: Damage, aside: _Aside) -> None:
    aside.move(*damage.caches)
    for commit in damage.commits:
        aside.keep(commit.key)
        reach("repair")
        storage.write(commit.key, _empty_commit(commit.version))
    if not (damage.data or damage.commits or damage.caches or damage.salvaged.num_rows):
        return
    table = EventLog(storage).handle()
    if damage.salvaged.num_rows:
        reach("repair")
        with storage.discreet():
            write_deltalake(
                table, damage.salvaged, mode="append",
                writer_properties=WriterProperties(compression="ZSTD", compression_level=1),
            )  # fmt: skip
    _drop(storage, damage, aside)
    with storage.discreet():
        EventLog(storage).handle().create_checkpoint()


def _drop(storage: Storage, damage: Damage, aside: _Aside) -> None:
    """Take damaged data files out of the table. Their rows are in it again, or lost; so no data changes."""
    if not damage.data:
        return
    table = EventLog(storage).handle()
    entries = pa.table(table.get_add_actions()).select(["path", "size_bytes"]).to_pylist()
    gone = [entry for entry in entries if f"{FOLDER}/{entry['path']}" in damage.data]
    removed: list[AddAction | RemoveAction] = [
        RemoveAction(
            entry["path"], data_change=False, deletion_timestamp=0, size=entry["size_bytes"], partition_values={}
        )
        for entry in gone
    ]
    reach("repair")
    with storage.discreet():
        table.create_write_transaction(removed, mode="append", schema=table.schema())
    aside.move(*damage.data)


def _empty_commit(version: int) -> bytes:
    """What stands where a damaged commit was: the very first one makes the table, another one brings nothing."""
    if version == 0:
        with tempfile.TemporaryDirectory() as folder:
            made = Directory(Path(folder))
            EventLog(made).create()
            return made.read(log_key(FOLDER, 0))
    return json.dumps({"commitInfo": {"timestamp": 0, "operation": STAND_IN, "operationParameters": {}}}).encode()


def _mend_blobs(storage: Storage, damage: Damage, aside: _Aside, backup: Lake | None) -> None:
    for blobs in damage.blobs:
        if blobs.in_backup and backup is not None:
            aside.keep(blobs.key)
            reach("repair")
            size = blob_files.sizes(backup.storage)[blobs.key]
            storage.write_from(blobs.key, pieces(backup.storage, blobs.key, size))
        elif not blobs.good:
            aside.move(blobs.key)


def _fold_anew(lake: Lake, damage: Damage) -> Iterator[Line]:
    if damage.projections or damage.data or damage.commits or damage.salvaged.num_rows:
        try:
            rebuild(lake)
        except DamagedError as error:  # a payload that is lost: readers go on with the columns that are stored
            yield Line(
                "projections", f"{error.what}: {error.why}", "not folded anew; what is stored stays in use", True
            )


def _record(lake: Lake, lines: list[Line]) -> None:
    said = [[line.what, line.why, line.cure] for line in lines]
    with lake.begin(STAGE, str(lake.events_version()), derivation=sha256(canonical_json(said))) as batch:
        for line in lines:
            row = {"stage": STAGE, "item": line.what, "reason": "damaged", "detail": f"{line.why}; {line.cure}"}
            batch.record("quarantine", row)


def _lines(damage: Damage) -> list[Line]:
    return [*_log_lines(damage), *_event_lines(damage), *_blob_lines(damage)] + [
        Line(key, why, "folded anew from the events", False) for key, why in damage.projections.items()
    ]


def _log_lines(damage: Damage) -> Iterator[Line]:
    if damage.marker:
        yield Line(MARKER, damage.marker, "written anew", False)
    for commit in damage.commits:
        cure = "made anew" if commit.version == 0 else "replaced by an empty commit; its events are looked for"
        unknown = commit.key in damage.unknown
        more = "; what it brought, if anything, is not known" if unknown else ""
        yield Line(commit.key, commit.why() or "it is not what a commit must be", cure + more, unknown)
    for key, why in damage.caches.items():
        yield Line(key, why, "moved aside; a new checkpoint is made", False)


def _event_lines(damage: Damage) -> Iterator[Line]:
    for key, why in damage.data.items():
        yield Line(key, why, "moved aside, if it is there", False)
    found = damage.salvaged.column("batch").unique().to_pylist()
    if found:
        yield Line(_named("batches", found), "their events are not in the table", "copies were found, put back", False)
    if damage.lost:
        yield Line(_named("batches", damage.lost), "no copy of their events is left", "run again, or --from", True)
    if damage.orphans:
        yield Line(_named("versions", damage.orphans), "what they were made from is lost", "they stay readable", True)


def _blob_lines(damage: Damage) -> Iterator[Line]:
    for blobs in damage.blobs:
        needed = f"; needed by {_named('', blobs.needed_by)}" if blobs.needed_by else ""
        if blobs.in_backup:
            yield Line(blobs.key, blobs.why, "taken from the other lake", False)
        elif blobs.good:
            cure = f"stays, as its other {blobs.good} blobs are whole and each is proved when it is read"
            yield Line(blobs.key, f"{blobs.why}{needed}", cure, bool(blobs.needed_by))
        else:
            yield Line(blobs.key, f"{blobs.why}{needed}", "moved aside, if it is there; --from takes a copy", True)


def _named(what: str, names: list[str]) -> str:
    shown = ", ".join(name[:12] if what == "batches" else name for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} {what}: {shown}{more}" if what else f"{shown}{more}"
