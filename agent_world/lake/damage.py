"""What is wrong with a lake, found without opening it: which files, what they held, and what can be made anew.

The commit files are read one by one, so that a damaged one hides nothing. A batch was committed when a commit file
carries its mark; its events may lie in a file of the table, in one that a compaction left behind, or in a backup.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from agent_world.identity import content_hash, version_id
from agent_world.lake import blob_files, projections
from agent_world.lake.batch import batch_id
from agent_world.lake.blobs import BlobReader
from agent_world.lake.delta_log import CommitFile, checkpoint_damage, checkpoint_files, commit_files
from agent_world.lake.errors import DamagedError, NotALakeError, NotFoundError
from agent_world.lake.fold import FOLD
from agent_world.lake.lake import MARKER, check_mark
from agent_world.lake.log import FOLDER, SCHEMA, in_columns_of_today, in_order
from agent_world.lake.parquet import decode
from agent_world.lake.pieces import digest_of, pieces
from agent_world.lake.proof import OnProgress, silent
from agent_world.lake.rows import having
from agent_world.lake.tables import Index, Tables
from agent_world.lake.view import View
from lake_schemas import TABLES

if TYPE_CHECKING:
    from agent_world.lake.lake import Lake
    from agent_world.lake.storage import Storage

STAND_IN = "REPAIR"
"""Operation of the commit that stands where a damaged one was."""

_MARKS = re.compile(rb'"appId":"([0-9a-f]{64})"')
_BRINGS_NOTHING = re.compile(rb'"operation":"(OPTIMIZE|VACUUM|REPAIR)')


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedBlobs:
    """A file of blobs that is missing or wrong."""

    key: str
    why: str
    good: int
    """How many blobs of it are whole."""
    needed_by: list[str]
    """Versions, and rows of fact tables, that need the others."""
    in_backup: bool


@dataclass(slots=True, kw_only=True)
class Damage:
    """Everything that was found."""

    marker: str | None = None
    """Why ``lake.json`` must be written anew."""
    commits: list[CommitFile] = field(default_factory=list)
    caches: dict[str, str] = field(default_factory=dict)
    """Checkpoints of the log that cannot be used, with the reason."""
    data: dict[str, str] = field(default_factory=dict)
    """Data files of `events` in use that are missing or wrong, with the reason."""
    salvaged: pa.Table = field(default_factory=SCHEMA.empty_table)
    """Events of theirs that lie elsewhere."""
    lost: list[str] = field(default_factory=list)
    """Batches that were committed and of which no whole copy is left."""
    unknown: list[str] = field(default_factory=list)
    """Commit files of which nothing tells whether they brought a batch."""
    orphans: list[str] = field(default_factory=list)
    """Versions that were made from one that is lost."""
    blobs: list[DamagedBlobs] = field(default_factory=list)
    projections: dict[str, str] = field(default_factory=dict)
    """Stored projections that cannot be used, with the reason."""
    batches: int = 0
    versions: int = 0
    """How many can be read when all is done that can be done."""

    @property
    def any(self) -> bool:
        """Whether anything is wrong."""
        found = (self.marker, self.commits, self.caches, self.data, self.lost, self.blobs, self.projections)
        return any(found) or self.salvaged.num_rows > 0


def examine(storage: Storage, backup: Lake | None = None, *, on_progress: OnProgress = silent) -> Damage:
    """Find what is wrong with the lake in `storage`; `backup` is a lake that holds copies, as an export does.

    Raises:
        NotALakeError: there is nothing like a lake. LakeFromNewerVersionError: newer code wrote it.
    """
    log = _Log(storage)
    marker = _marker(storage, log)
    found, view = _events(storage, log, backup, {}, on_progress)
    changed = _not_as_pinned(storage, [view] if backup is None else [view, backup])
    if changed:  # rows that read well and say something else
        found, view = _events(storage, log, backup, changed, on_progress)
    found.marker = marker
    found.batches, found.versions = view.table("batches").num_rows, view.table("versions").num_rows
    found.orphans = _orphans(view)
    found.blobs = list(_blobs(storage, view, backup, on_progress))
    found.projections = dict(_projections(storage))
    return found


def _events(
    storage: Storage, log: _Log, backup: Lake | None, distrusted: dict[str, str], on_progress: OnProgress
) -> tuple[Damage, View]:
    found = Damage(commits=log.damaged, caches=log.caches)
    return found, _view(storage, log.events(found, backup, distrusted, on_progress))


class _Log:
    """The commit files and data files of `events`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.commits = list(commit_files(storage, FOLDER))
        self.damaged = [commit for commit in self.commits if commit.why()]
        self.caches = checkpoint_damage(storage, FOLDER) if self.commits else {}
        if self.commits and not self.damaged and not self.caches:
            self.damaged = self._refused()
        if self.damaged:  # a checkpoint sums up what was there, which is not what will be
            self.caches |= {key: "it covers a damaged commit" for key in checkpoint_files(storage, FOLDER)}
        damaged = {commit.version for commit in self.damaged}
        self._good = [commit for commit in self.commits if commit.version not in damaged]

    def events(
        self, found: Damage, backup: Lake | None, distrusted: dict[str, str], on_progress: OnProgress
    ) -> pa.Table:
        """Every event that can be read, in order; what cannot, and what was salvaged, goes into `found`."""
        parts = []
        for number, path in enumerate(self._live, 1):
            try:
                if f"{FOLDER}/{path}" in distrusted:
                    raise DamagedError(path, distrusted[f"{FOLDER}/{path}"])
                parts.append(self._rows(path))
            except DamagedError as error:
                found.data[f"{FOLDER}/{path}"] = error.why
            on_progress("events", number, len(self._live))
        events = pa.concat_tables([SCHEMA.empty_table(), *parts])
        present = _whole(events)
        if found.data or self._doubtful or self._marks.keys() - present:
            salvage = _Salvage(events, present, self._marks, set(self._doubtful))
            for path in self._others():
                salvage.take(self._rows_of_other(path), path)
            if backup is not None:
                salvage.take_from_backup(backup)
            found.salvaged = pa.concat_tables([SCHEMA.empty_table(), *salvage.found])
            found.lost = sorted(self._marks.keys() - salvage.present)
            found.unknown = [c.key for c in self._unknown() if c.version not in salvage.versions]
        return in_order(pa.concat_tables([events, found.salvaged]))

    @cached_property
    def _live(self) -> list[str]:
        """Paths of the data files in use."""
        paths: dict[str, None] = {}
        for commit in self._good:
            for path in commit.paths("remove"):
                paths.pop(path, None)
            paths |= dict.fromkeys(commit.paths("add"))
        return list(paths)

    @cached_property
    def _marks(self) -> dict[str, int]:
        """Version by batch, of every batch that was committed as far as a commit file says."""
        marks = {}
        for commit in self._good:
            names = [entry["txn"]["appId"] for entry in commit.actions or () if "txn" in entry]
            marks |= dict.fromkeys(names, commit.version)
        for commit in self.damaged:
            marks |= {name.decode(): commit.version for name in _MARKS.findall(commit.data or b"")}
        return marks

    @cached_property
    def _doubtful(self) -> dict[int, bytes]:
        """Versions of which no commit file tells what they brought, with what is left of it."""
        doubtful = {commit.version: commit.data or b"" for commit in self.damaged}
        return doubtful | {commit.version: b"" for commit in self._good if _is_stand_in(commit)}

    def _others(self) -> list[str]:
        """Paths of data files that are not in use: first those that a commit names, then those of dead writers."""
        named = {path for commit in self._good for path in commit.paths("add")}
        torn = b"".join(self._doubtful.values())
        keys = [item.key for item in self._storage.list(FOLDER) if item.key.endswith(".parquet")]
        paths = [key.removeprefix(f"{FOLDER}/") for key in keys if "/_delta_log/" not in key]
        live = set(self._live)
        others = [path for path in paths if path not in live]
        return sorted(others, key=lambda path: (path not in named, path.encode() not in torn, path))

    def _unknown(self) -> Iterator[CommitFile]:
        for commit in self.damaged:
            data = commit.data or b""
            if commit.version > 0 and not _MARKS.search(data) and not _BRINGS_NOTHING.search(data):
                yield commit

    def _rows_of_other(self, path: str) -> pa.Table:
        try:
            return self._rows(path)
        except DamagedError:
            return SCHEMA.empty_table()  # nobody needs it

    def _rows(self, path: str) -> pa.Table:
        key = f"{FOLDER}/{path}"
        try:
            rows = in_columns_of_today(decode(key, self._storage.read(key)), self._storage.uri)
            rows.validate(full=True)
            _whole(rows)
            _check_identities(rows)
        except FileNotFoundError:
            raise DamagedError(key, "the file is missing") from None
        except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise DamagedError(key, f"its rows make no sense ({str(error).splitlines()[0]})") from error
        return rows

    def _refused(self) -> list[CommitFile]:
        """The commit file that delta-rs does not take, when all of them are JSON."""
        from agent_world.lake.log import EventLog

        try:
            EventLog(self._storage).handle()
        except DamagedError as error:
            return [commit for commit in self.commits if commit.key == error.what]
        return []


class _Salvage:
    """Batches that were committed and are not in the table, gathered from wherever a whole copy lies."""

    def __init__(self, events: pa.Table, present: set[str], marks: dict[str, int], doubtful: set[int]) -> None:
        self.present = present
        self.versions: set[int] = set(events.column("commit_version").unique().to_pylist())
        self.found: list[pa.Table] = []
        self._marks, self._doubtful = marks, doubtful
        self._event_ids = set(events.column("event_id").to_pylist())

    def take(self, events: pa.Table, path: str) -> None:
        """Take from a file what is wanted: batches with a mark, else those of a commit that can no longer say."""
        batches = _whole(events) - self.present
        marked = batches & self._marks.keys()
        rows = having(events, batch=sorted(batches))
        claimed = self._doubtful - self.versions  # one that died before its commit claims the version of the winner
        maybe = set(having(rows, commit_version=sorted(claimed)).column("batch").to_pylist())
        self._add(having(rows, batch=sorted(marked | maybe)))

    def take_from_backup(self, backup: Lake) -> None:
        """Take marked batches from another lake, where they were committed at other versions."""
        events = having(backup.table("events"), batch=sorted(self._marks.keys() - self.present))
        batches = events.column("batch").to_pylist()
        places: Counter[int] = Counter()
        versions, positions = [], []
        for batch in batches:
            version = self._marks[batch]
            versions.append(version)
            positions.append(places[version])
            places[version] += 1
        columns = {"commit_version": pa.array(versions, pa.int64()), "position": pa.array(positions, pa.int64())}
        self._add(pa.table({f.name: columns.get(f.name, events.column(f.name)) for f in SCHEMA}, SCHEMA))

    def _add(self, rows: pa.Table) -> None:
        self.present |= set(rows.column("batch").to_pylist())
        self.versions |= set(rows.column("commit_version").to_pylist())
        fresh = [event not in self._event_ids for event in rows.column("event_id").to_pylist()]
        rows = rows.filter(pa.array(fresh, pa.bool_()))
        self._event_ids |= set(rows.column("event_id").to_pylist())
        if rows.num_rows:
            self.found.append(rows)


class _Readable:
    """Events that could be read."""

    def __init__(self, events: pa.Table) -> None:
        self._events = events

    def version(self) -> int:
        return pc.max(self._events.column("commit_version")).as_py() or 0

    def read(self, after: int, through: int) -> pa.Table:
        versions = pc.field("commit_version")
        return self._events.filter((versions > after) & (versions <= through))


def _view(storage: Storage, events: pa.Table) -> View:
    source = _Readable(events)
    blobs = BlobReader(storage, Index(lambda: tables.table("blobs"), "sha256"))
    tables = Tables(source, blobs.read, lambda name: None)
    return View(source, blobs, tables)  # pyright: ignore[reportArgumentType] - its log is asked for events only


def _marker(storage: Storage, log: _Log) -> str | None:
    why = None
    try:
        check_mark(storage.uri, storage.read(MARKER))
    except FileNotFoundError:
        why = "the file is missing"
    except ValueError:
        why = "it cannot be read"
    if not log.commits:
        raise NotALakeError(storage.uri, f"it has no {FOLDER}")
    return why


def _whole(events: pa.Table) -> set[str]:
    """The batches of which all events are there."""
    counts = Counter(events.column("batch").to_pylist())
    ends = having(events, event_type="committed").select(["batch", "payload"]).to_pylist()
    return {end["batch"] for end in ends if counts[end["batch"]] == json.loads(end["payload"])["events"]}


def _check_identities(events: pa.Table) -> None:
    """See that batches and versions are what their ids say.

    Raises:
        ValueError: one is not.
    """
    for row in events.group_by(["batch", "stage", "partition", "derivation"]).aggregate([]).to_pylist():
        if batch_id(row["stage"], row["partition"], row["derivation"]) != row["batch"]:
            raise ValueError(f"batch {row['batch'][:12]} is not what its id says")
    columns = ["kind", "artifact_id", "version_id", "content_hash", "blob_root", "payload"]
    created = having(events, event_type="created").select(columns)
    for row in created.filter(pc.is_valid(created.column("payload"))).to_pylist():
        payload = json.loads(row["payload"])
        known = {content_hash(row["kind"], payload, root) for root in (None, row["blob_root"])}
        if row["content_hash"] not in known or version_id(row["artifact_id"], row["content_hash"]) != row["version_id"]:
            raise ValueError(f"{row['version_id']} is not what its id says")


def _not_as_pinned(storage: Storage, views: Sequence[View]) -> dict[str, str]:
    """Data files whose bytes are not those that a snapshot pins, with the reason.

    Its manifest is read from the first of `views` that has it; it is proved by its id.
    """
    pinned: dict[str, str] = {}
    for row in views[0].rows("snapshots"):
        for view in views:
            with suppress(DamagedError, NotFoundError):
                manifest = json.loads(view.blob(row["manifest_blob"]))
                pinned |= {f"{FOLDER}/{file['path']}": file["sha256"] for file in manifest["files"]}
                break
    sizes = {item.key: item.size for item in storage.list(FOLDER)}
    return {
        key: "its bytes are not those that a snapshot pins"
        for key, digest in pinned.items()
        if key in sizes and digest_of(pieces(storage, key, sizes[key])) != digest
    }


def _orphans(view: View) -> list[str]:
    edges = view.table("edges")
    known = pc.is_in(edges.column("parent"), value_set=view.table("versions").column("version_id").combine_chunks())
    return sorted(set(edges.filter(pc.invert(known)).column("child").to_pylist()))


def _blobs(storage: Storage, view: View, backup: Lake | None, on_progress: OnProgress) -> Iterator[DamagedBlobs]:
    sizes = blob_files.sizes(storage)
    there = {} if backup is None else blob_files.sizes(backup.storage)
    files = blob_files.places_by_file(view.table("blobs"))
    done, size = 0, sum(sizes.get(key, 0) for key in files)
    for key, places in files.items():
        proof = blob_files.prove(storage, key, sizes.get(key), places)
        why = "the file is missing" if proof is None else proof.why()
        if why:
            bad = places if proof is None else proof.damaged()
            copy = None if backup is None else blob_files.prove(backup.storage, key, there.get(key), places)
            yield DamagedBlobs(
                key=key,
                why=why,
                good=len(places) - len(bad),
                needed_by=_needing(view, {place.sha256 for place in bad}),
                in_backup=copy is not None and copy.why() is None,
            )
        done += sizes.get(key, 0)
        on_progress("blobs", done, size)


def _needing(view: View, blobs: set[str]) -> list[str]:
    """Versions whose files or payload lie in one of the blobs, and rows of facts that name one."""
    wanted = sorted(blobs)
    roots = having(view.table("trees"), sha256=wanted).column("root").unique().to_pylist()
    found = dict.fromkeys(having(view.table("versions"), blob_root=roots).column("version_id").to_pylist())
    events = view.table("events")
    for event in having(events, payload_blob=wanted).select(["version_id", "kind", "event_id"]).to_pylist():
        found[event["version_id"] or f"{event['kind']} row {event['event_id']}"] = None
    for event in having(events, event_type="recorded").select(["kind", "event_id", "payload"]).to_pylist():
        if any(blob in (event["payload"] or "") for blob in wanted):
            found[f"{event['kind']} row {event['event_id']}"] = None
    return list(found)


def _projections(storage: Storage) -> Iterator[tuple[str, str]]:
    """Projections that readers have to fold anew because what is stored cannot be used."""
    try:
        pointer = json.loads(storage.read(projections.POINTER))
        generation, fold = pointer["generation"], pointer["fold"]
    except FileNotFoundError:
        return
    except (ValueError, TypeError, KeyError):
        yield projections.POINTER, "it cannot be read"
        return
    stored = projections.Projections(storage)
    for name in TABLES if fold == FOLD else ():
        why = stored.damage(name)
        if why:
            yield f"{projections.FOLDER}/{generation}/{name}", why


def _is_stand_in(commit: CommitFile) -> bool:
    said: Iterable[dict[str, Any]] = commit.actions or ()
    return any(entry.get("commitInfo", {}).get("operation") == STAND_IN for entry in said)
