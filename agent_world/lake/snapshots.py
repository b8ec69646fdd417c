"""Snapshots: a canonical manifest that pins what a lake says, by hash; its sha256 is the snapshot's id.

A manifest lists the batches in order with a digest each, the files they lie in and the commit files that name those,
the blob roots they reach, a logical digest of every table and the code version. Taking one copies nothing. Since events
are never removed, a snapshot is read by folding its batches again, here or in any lake that imported them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_world.identity import Digest, canonical_json, sha256
from agent_world.lake.delta_log import commit_files
from agent_world.lake.digest import batch_digests, table_digest
from agent_world.lake.errors import DamagedError, NotFoundError, near
from agent_world.lake.fold import FOLD
from agent_world.lake.log import FOLDER
from agent_world.lake.parquet import entries
from agent_world.lake.pieces import digest_of, pieces
from agent_world.lake.rows import having
from lake_schemas import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalake import DeltaTable

    from agent_world.lake.batch import Batch
    from agent_world.lake.lake import Lake
    from agent_world.lake.view import View

STAGE = "snapshot"
_ABOUT = ("signature", "repair")
"""Stages whose batches say something about the lake and add nothing to it."""

_FORMAT = 3
_SHORTEST = 6
"""Characters of an id that may stand for it."""


class Problem(NamedTuple):
    """Something that is not what the manifest says."""

    what: str
    why: str


def create(lake: Lake, run_id: str | None = None) -> Digest:
    """Pin the lake as it stands; gives the snapshot id. When nothing was committed since the last one, that one."""
    batches = lake.rows("batches", columns=["stage", "partition"])
    last = next((row for row in reversed(batches) if row["stage"] not in _ABOUT), None)
    if last is not None and last["stage"] == STAGE:
        return Digest(last["partition"])
    with lake.in_flight():  # else gc might take the files of this version before they are pinned
        version = lake.events_version()
        manifest = canonical_json(_manifest(lake, version)).encode()
        snapshot = sha256(manifest)
        with lake.begin(STAGE, snapshot, derivation=snapshot, run_id=run_id) as batch:
            record(batch, snapshot, version, manifest)
    return snapshot


def ids(lake: View) -> list[Digest]:
    """Every snapshot of the lake, imported ones included, in the order in which they came."""
    return [Digest(row["snapshot_id"]) for row in lake.rows("snapshots", columns=["snapshot_id"])]


def named(lake: View, snapshot: str) -> Digest:
    """The whole id of a snapshot that may be shortened to a unique start.

    Raises:
        NotFoundError: this lake has no such snapshot, or several.
    """
    found = matching(lake, snapshot)
    if len(found) != 1:
        why = f"{len(found)} snapshots begin with {snapshot!r}" if found else ""
        raise NotFoundError("snapshot", snapshot, found or near(snapshot, ids(lake)), why)
    return found[0]


def matching(lake: View, start: str) -> list[Digest]:
    """The snapshots whose id begins with `start`, which must be long enough to mean one."""
    return [exact for exact in ids(lake) if len(start) >= _SHORTEST and exact.startswith(start)]


def manifest_of(lake: View, snapshot: str) -> dict[str, Any]:
    """The manifest of a snapshot.

    Raises:
        NotFoundError: this lake has no such snapshot. DamagedError: its manifest is not what its id says.
    """
    exact = named(lake, snapshot)
    [row] = lake.rows("snapshots", where={"snapshot_id": exact}, columns=["manifest_blob"])
    data = lake.blob(row["manifest_blob"])
    if sha256(data) != exact:
        raise DamagedError(f"snapshot {exact[:12]}", "its manifest has another sha256")
    return json.loads(data)


def record(batch: Batch, snapshot: Digest, version: int, manifest: bytes) -> None:
    """Say, in `batch`, that the lake has a snapshot."""
    blob = batch.blob(manifest)
    batch.record("snapshots", {"snapshot_id": snapshot, "events_version": version, "manifest_blob": blob})


def folding(table: str) -> Digest:
    """What decides how events become a table: the meaning of events, and the table's shape, keys and columns."""
    spec = TABLES[table]
    columns = [[column.name, str(column.type), column.volatile] for column in spec.all_columns]
    return sha256(canonical_json({"fold": FOLD, "shape": spec.shape, "key": list(spec.key), "columns": columns}))


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
        "files": sorted(_files(lake, handle), key=lambda file: file["path"]),
        "log": [sha256(commit.data or b"") for commit in commit_files(lake.storage, FOLDER, version)],
        "blob_roots": sorted(set(roots.to_pylist())),
        "tables": tables,
    }


def _tables(view: View) -> dict[str, dict[str, Any]]:
    found = {name: view.table(name) for name in sorted(TABLES)}
    return {
        name: {
            "rows": table.num_rows,
            "sha256": table_digest(TABLES[name], table, volatile=False),
            "folded_by": folding(name),
        }
        for name, table in found.items()
    }


def _files(lake: Lake, handle: DeltaTable) -> Iterator[dict[str, Any]]:
    for entry in entries(handle):
        path, size = entry["path"], entry["size_bytes"]
        digest = digest_of(pieces(lake.storage, f"{FOLDER}/{path}", size))
        yield {"path": path, "size": size, "sha256": digest}
