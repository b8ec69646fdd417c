"""Proof that a lake still holds what a snapshot pins: every file, batch, table and blob is read again and compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agent_world.identity import canonical_json, sha256
from agent_world.lake import blob_files
from agent_world.lake.blobs import BlobReader
from agent_world.lake.delta_log import commit_files
from agent_world.lake.digest import batch_digests, table_digest
from agent_world.lake.errors import DamagedError
from agent_world.lake.log import FOLDER, EventLog
from agent_world.lake.moments import Pinned, Prefix
from agent_world.lake.pieces import digest_of, pieces
from agent_world.lake.signing import signature_problems
from agent_world.lake.snapshots import Problem, folding, manifest_of
from agent_world.lake.tables import EventSource, Index, Tables
from agent_world.lake.view import View
from lake_schemas import TABLES

if TYPE_CHECKING:
    from agent_world.lake.lake import Lake
    from agent_world.lake.storage import Storage

OnProgress = Callable[[str, int, int], None]
"""Hears of the part at work, how much of it is done, and of how much; blobs are counted in bytes."""


UNREADABLE = (DamagedError, ValueError, pa.ArrowException)
"""What comes up where events are read that are not what was written; JSON, texts and rows complain as ValueError."""


def silent(part: str, done: int, of: int) -> None:
    """Tell nobody."""


def verify(lake: Lake, snapshot: str, *, on_progress: OnProgress = silent) -> list[Problem]:
    """Read everything again that a snapshot pins, and compare: files, batches, tables (folded anew), blobs.

    Raises:
        NotFoundError: this lake has no such snapshot.
    """
    try:
        proof = Proof(lake, snapshot)
    except UNREADABLE as error:
        return _once(_without_events(lake, snapshot, error, on_progress))
    found = list(proof.files(on_progress))
    if not found:
        found += proof.events()
    if found:  # what the events say cannot be trusted
        found += _blobs_by_name(lake, on_progress)
    else:
        found += [*proof.blobs(on_progress), *proof.tables(on_progress), *signature_problems(proof.now, proof.snapshot)]
    return _once(found)


class Proof:
    """The parts of a proof. What was read before, and the stored projections, count for nothing.

    Raises:
        NotFoundError: this lake has no such snapshot. One of `UNREADABLE`: not even its manifest can be read.
    """

    def __init__(self, lake: Lake, snapshot: str) -> None:
        self._storage = lake.storage
        log = EventLog(lake.storage)
        self.now = _folded(lake.storage, log, Prefix(log, log.version()))
        self.manifest = manifest_of(self.now, snapshot)
        self.data = canonical_json(self.manifest).encode()
        self.snapshot = sha256(self.data)
        self._events = Pinned(log, [batch["batch"] for batch in self.manifest["batches"]])
        self.view = _folded(lake.storage, log, self._events)

    def files(self, on_progress: OnProgress = silent) -> Iterator[Problem]:
        """What is wrong with the pinned data files and commit files."""
        return _files(self._storage, self.manifest, on_progress)

    def events(self) -> Iterator[Problem]:
        """What is wrong with the pinned batches."""
        try:
            found = {batch.batch: batch._asdict() for batch in batch_digests(self.view.table("events"))}
        except UNREADABLE as error:
            yield _problem(error)
            return
        for batch in self.manifest["batches"]:
            if batch["batch"] not in found:
                yield Problem(f"batch {batch['batch'][:12]}", "it is missing")
            elif found[batch["batch"]] != batch:
                yield Problem(f"batch {batch['batch'][:12]}", "its events are not the pinned ones")

    def tables(self, on_progress: OnProgress = silent) -> Iterator[Problem]:
        """Tables that are not folded as they were; where other code folds them, the batches are what proves them."""
        pinned = self.manifest["tables"]
        for number, (name, table) in enumerate(pinned.items(), 1):
            if name in TABLES and table.get("folded_by") == folding(name):
                yield from self._table(name, table["sha256"])
            on_progress("tables", number, len(pinned))

    def blobs(self, on_progress: OnProgress = silent) -> Iterator[Problem]:
        """Trees that are missing, and files of blobs that are not what their names and their blobs say."""
        yield from self.trees()
        sizes = blob_files.sizes(self._storage)
        files = blob_files.places_by_file(self.view.table("blobs"))
        manifest = self.now.blobs.place(self.snapshot)
        if manifest is not None:
            files.setdefault(manifest.pack, [manifest])
        done, size = 0, sum(sizes.get(key, 0) for key in files)
        for key, places in files.items():
            proof = blob_files.prove(self._storage, key, sizes.get(key), places)
            why = "the file is missing" if proof is None else proof.why()
            if why:
                yield Problem(key, why)
            done += sizes.get(key, 0)
            on_progress("blobs", done, size)

    def trees(self) -> Iterator[Problem]:
        """Roots of pinned artifacts that no tree of the pinned batches has."""
        reached = set(self.view.table("trees").column("root").to_pylist())
        for root in self.manifest["blob_roots"]:
            if root not in reached:
                yield Problem(f"tree {root[:12]}", "it is missing")

    def _table(self, name: str, pinned: str) -> Iterator[Problem]:
        alone = Tables(self._events, self.view.blobs.read, lambda name: None)  # so that it goes when it is proved
        try:
            found = table_digest(TABLES[name], alone.table(name), volatile=False)
        except DamagedError as error:  # a payload that lies in a damaged blob
            yield Problem(f"table {name}", f"it cannot be folded: {error.what}: {error.why}")
            return
        if found != pinned:
            yield Problem(f"table {name}", "folding the events gives other rows than the pinned ones")


def _folded(storage: Storage, log: EventLog, events: EventSource) -> View:
    """A view in which every table is folded from the events, the places of blobs too."""
    blobs = BlobReader(storage, Index(lambda: tables.table("blobs"), "sha256"))
    tables = Tables(events, blobs.read, lambda name: None)
    return View(log, blobs, tables)


def _files(storage: Storage, manifest: dict[str, Any], on_progress: OnProgress) -> Iterator[Problem]:
    """What is wrong with the pinned files of `events`. In another lake the same batches lie in other files."""
    pinned = {f"{FOLDER}/{file['path']}": file for file in manifest["files"]}
    commits = list(commit_files(storage, FOLDER, manifest["events_version"]))
    here = {f"{FOLDER}/{path}" for commit in commits for path in commit.paths("add")}
    sizes = {item.key: item.size for item in storage.list(FOLDER)}
    if pinned.keys().isdisjoint(here | sizes.keys()):
        return
    for commit, digest in zip(commits, manifest.get("log", ()), strict=False):  # format 2 pins no commit files
        if commit.data is None:
            yield Problem(commit.key, "the file is missing")
        elif sha256(commit.data) != digest:
            yield Problem(commit.key, "its bytes are not the pinned ones")
    for number, (key, file) in enumerate(pinned.items(), 1):
        why = _file(storage, key, file, sizes.get(key))
        if why:
            yield Problem(key, why)
        on_progress("events", number, len(pinned))


def _file(storage: Storage, key: str, pinned: dict[str, Any], size_bytes: int | None) -> str | None:
    if size_bytes is None:
        return "the file is missing"
    if size_bytes != pinned["size"]:
        return f"it has {size_bytes} bytes, not the pinned {pinned['size']}"
    same = digest_of(pieces(storage, key, size_bytes)) == pinned["sha256"]
    return None if same else "its bytes are not the pinned ones"


def _without_events(lake: Lake, snapshot: str, error: Exception, on_progress: OnProgress) -> list[Problem]:
    """What can be said when the events cannot be read: by the manifest, if a file of blobs proves to be it."""
    manifest = blob_files.find(lake.storage, snapshot)
    known = () if manifest is None else _files(lake.storage, json.loads(manifest), on_progress)
    return [*known, _problem(error), *_blobs_by_name(lake, on_progress)]


def _problem(error: Exception) -> Problem:
    if isinstance(error, DamagedError):
        return Problem(error.what, error.why)
    return Problem("events", f"they make no sense ({str(error).splitlines()[0]})")


def _blobs_by_name(lake: Lake, on_progress: OnProgress) -> Iterator[Problem]:
    sizes = blob_files.sizes(lake.storage)
    done, size = 0, sum(sizes.values())
    for key, length in sizes.items():
        if not blob_files.prove_by_name(lake.storage, key, length):
            yield Problem(key, "its bytes do not have the sha256 in its name")
        done += length
        on_progress("blobs", done, size)


def _once(problems: list[Problem]) -> list[Problem]:
    """Of each thing the first that was said of it."""
    return list({problem.what: problem for problem in reversed(problems)}.values())[::-1]
