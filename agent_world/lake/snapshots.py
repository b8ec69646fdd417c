"""Snapshots: a canonical manifest that pins what a lake says, by hash; its sha256 is the snapshot's id.

A manifest lists the batches in order with a digest each, the data files they lie in, the blob roots they reach, a
logical digest of every table and the code version. Taking one copies nothing. Since events are never removed, a
snapshot is read by folding its batches again, here or in any lake that imported them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from agent_world.identity import Digest, canonical_json, sha256
from agent_world.lake.blobs import Place, read_place
from agent_world.lake.digest import batch_digests, table_digest
from agent_world.lake.errors import ConflictError, DamagedError, NotFoundError, near
from agent_world.lake.fold import FOLD
from agent_world.lake.log import FOLDER
from agent_world.lake.rows import having
from lake_schemas import TABLES

if TYPE_CHECKING:
    from agent_world.lake.batch import Batch
    from agent_world.lake.lake import Lake
    from agent_world.lake.view import View

STAGE = "snapshot"
_FORMAT = 2


class Problem(NamedTuple):
    """Something that is not what the manifest says."""

    what: str
    why: str


def create(lake: Lake, run_id: str | None = None) -> Digest:
    """Pin the lake as it stands; gives the snapshot id. When nothing was committed since the last one, that one."""
    batches = lake.rows("batches", columns=["stage", "partition"])
    if batches and batches[-1]["stage"] == STAGE:
        return Digest(batches[-1]["partition"])
    version = lake.events_version()
    manifest = canonical_json(_manifest(lake, version)).encode()
    snapshot = sha256(manifest)
    with lake.begin(STAGE, snapshot, derivation=snapshot, run_id=run_id) as batch:
        _record(batch, snapshot, version, manifest)
    return snapshot


def manifest_of(lake: View, snapshot: str) -> dict[str, Any]:
    """The manifest of a snapshot.

    Raises:
        NotFoundError: this lake has no such snapshot. DamagedError: its manifest is not what its id says.
    """
    rows = lake.rows("snapshots", columns=["snapshot_id", "manifest_blob"])
    found = {row["snapshot_id"]: row["manifest_blob"] for row in rows if row["snapshot_id"].startswith(snapshot)}
    if len(found) != 1 or len(snapshot) < 6:
        raise NotFoundError("snapshot", snapshot, near(snapshot, [row["snapshot_id"] for row in rows]))
    [(exact, blob)] = found.items()
    data = lake.blob(blob)
    if sha256(data) != exact:
        raise DamagedError(f"snapshot {exact[:12]}", "its manifest has another sha256")
    return json.loads(data)


def verify(lake: Lake, snapshot: str) -> list[Problem]:
    """Read everything again that a snapshot pins, and compare: files, batches, tables (folded anew), blobs.

    Raises:
        NotFoundError: this lake has no such snapshot.
    """
    fresh = type(lake)(lake.storage)  # what was read before is not what lies there now
    problems: list[Problem] = []
    try:
        manifest = manifest_of(fresh, snapshot)
        problems += _check_files(fresh, manifest)
        view = fresh.at(sha256(canonical_json(manifest)))
        problems += _check_batches(view, manifest)
        problems += _check_tables(view, manifest)
        problems += _check_blobs(fresh, view, manifest)
    except DamagedError as error:
        problems.append(Problem(error.what, error.why))
    return problems


def export(lake: Lake, snapshot: str, uri: str) -> Digest:
    """Copy a snapshot into the lake at `uri`, which is made when there is none.

    Raises:
        NotFoundError: no such snapshot. DamagedError: something it pins is damaged; nothing becomes visible there.
    """
    from agent_world.lake.lake import open_lake

    return take(open_lake(uri), lake, snapshot)


def import_from(lake: Lake, uri: str) -> list[Digest]:
    """Take every snapshot of the lake at `uri`; gives their ids.

    Raises:
        NotALakeError, NotFoundError: no lake or no snapshot there. DamagedError: as in `export`.
    """
    from agent_world.lake.lake import open_lake

    source = open_lake(uri, create=False)
    ids = list(dict.fromkeys(row["snapshot_id"] for row in source.rows("snapshots", columns=["snapshot_id"])))
    if not ids:
        raise NotFoundError("snapshot", uri, why=f"{uri} has no snapshot; make one there with `snapshot create`")
    return [take(lake, source, snapshot) for snapshot in ids]


def take(lake: Lake, source: Lake, snapshot: str) -> Digest:
    """Bring a snapshot of `source` into `lake`: verify all of it, copy its blobs, then make it visible in one commit.

    Batches that `lake` has already stay as they are, so that taking twice changes nothing.

    Raises:
        NotFoundError: no such snapshot. DamagedError: something it pins is damaged.
        ConflictError: `lake` has a batch of the same name with other content.
    """
    problems = verify(source, snapshot)
    if problems:
        raise DamagedError(f"snapshot {snapshot[:12]} of {source.uri}: {problems[0].what}", problems[0].why)
    manifest = manifest_of(source, snapshot)
    data = canonical_json(manifest).encode()
    exact = sha256(data)
    view = source.at(exact)
    with lake.begin("import", exact, derivation=exact) as batch:
        if not batch.done:
            _check_conflicts(lake, manifest)
            for pack in sorted(set(view.table("blobs").column("pack").to_pylist())):
                if not lake.storage.exists(pack):
                    lake.storage.write(pack, source.storage.read(pack))
            batch.bring(view.table("events"))
            _record(batch, exact, manifest["events_version"], data)
    return exact


def _check_conflicts(lake: Lake, manifest: dict[str, Any]) -> None:
    pinned = {batch["batch"]: batch["sha256"] for batch in manifest["batches"]}
    mine = having(lake.table("events"), batch=list(pinned))
    for found in batch_digests(mine):
        if found.sha256 != pinned[found.batch]:
            raise ConflictError(lake.uri, found.batch)


def _record(batch: Batch, snapshot: Digest, version: int, manifest: bytes) -> None:
    blob = batch.blob(manifest)
    batch.record("snapshots", {"snapshot_id": snapshot, "events_version": version, "manifest_blob": blob})


def _manifest(lake: Lake, version: int) -> dict[str, Any]:
    from agent_world.lake.code import code_version

    tables = _tables(lake)
    if lake.events_version() != version:  # the tables moved on while we looked
        tables = _tables(lake.at(version))
    events = lake.log.read(-1, version)
    handle = lake.log.handle(version)
    roots = having(events, event_type="created").column("blob_root").drop_null()
    return {
        "format": _FORMAT,
        "code_version": code_version(),
        "events_version": version,
        "protocol": {"reader": handle.protocol().min_reader_version, "writer": handle.protocol().min_writer_version},
        "batches": [batch._asdict() for batch in batch_digests(events)],
        "files": [_file(lake, path) for path in sorted(_paths(handle))],
        "blob_roots": sorted(set(roots.to_pylist())),
        "folded_by": _folding(),
        "tables": tables,
    }


def _folding() -> Digest:
    """What decides how events become tables: the meaning of events, and every table's keys and columns."""
    columns = {name: [*spec.key, "|", *(column.name for column in spec.all_columns)] for name, spec in TABLES.items()}
    return sha256(canonical_json({"fold": FOLD, "tables": columns}))


def _tables(view: View) -> dict[str, dict[str, Any]]:
    found = {name: view.table(name) for name in sorted(TABLES)}
    return {
        name: {"rows": table.num_rows, "sha256": table_digest(TABLES[name], table, volatile=False)}
        for name, table in found.items()
    }


def _paths(handle: Any) -> list[str]:
    return [unquote(path) for path in pa.table(handle.get_add_actions()).column("path").to_pylist()]


def _file(lake: Lake, path: str) -> dict[str, Any]:
    data = lake.storage.read(f"{FOLDER}/{path}")
    return {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _check_files(lake: Lake, manifest: dict[str, Any]) -> Iterator[Problem]:
    """A pinned file that lies here must be the pinned one. In another lake the same batches lie in other files."""
    for file in manifest["files"]:
        try:
            found = _file(lake, file["path"])
        except FileNotFoundError:
            continue
        if found != file:
            yield Problem(f"events/{file['path']}", "its bytes are not the pinned ones")


def _check_batches(view: View, manifest: dict[str, Any]) -> Iterator[Problem]:
    found = {batch.batch: batch._asdict() for batch in batch_digests(view.table("events"))}
    for batch in manifest["batches"]:
        if batch["batch"] not in found:
            yield Problem(f"batch {batch['batch'][:12]}", "it is missing")
        elif found[batch["batch"]] != batch:
            yield Problem(f"batch {batch['batch'][:12]}", "its events are not the pinned ones")


def _check_tables(view: View, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Tables are caches: where this code folds others out of the same events, the batches are what proves them."""
    if manifest["folded_by"] != _folding():
        return
    for name, pinned in manifest["tables"].items():
        if table_digest(TABLES[name], view.table(name), volatile=False) != pinned["sha256"]:
            yield Problem(f"table {name}", "folding the events gives other rows than the pinned ones")


def _check_blobs(lake: Lake, view: View, manifest: dict[str, Any]) -> Iterator[Problem]:
    reached = set(view.table("trees").column("root").to_pylist())
    for root in manifest["blob_roots"]:
        if root not in reached:
            yield Problem(f"tree {root[:12]}", "it is missing")
    for row in view.table("blobs").to_pylist():
        try:
            read_place(lake.storage, lake.blobs.place(row["sha256"]) or Place(**row))
        except DamagedError as error:
            yield Problem(error.what, error.why)
