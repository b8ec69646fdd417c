"""Snapshots carried from one lake to another: only what is missing there, proved on the way, visible in one commit.

A transfer that was stopped goes on where it was: a file that lies there already is trusted when its hash says so, and
replaced when not. Projections are not sent: the events version stands in them, and it differs from lake to lake. Their
digests are in the manifest; the tables are folded there from the events and stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from agent_world.identity import Digest, sha256
from agent_world.lake import blob_files
from agent_world.lake.digest import batch_digests
from agent_world.lake.errors import ConflictError, DamagedError, NotFoundError
from agent_world.lake.faults import reach
from agent_world.lake.pieces import pieces
from agent_world.lake.proof import OnProgress, Proof, silent
from agent_world.lake.rows import having
from agent_world.lake.signing import bring_signatures
from agent_world.lake.snapshots import Problem, ids, record

if TYPE_CHECKING:
    from agent_world.lake.blobs import Place
    from agent_world.lake.lake import Lake

STAGE = "import"
_AT_ONCE = 4
"""Files on their way side by side: over a network, waiting is most of it."""


class Carried(NamedTuple):
    """A snapshot that is in a lake now, and what had to be sent for it beside the events."""

    snapshot: Digest
    sent_files: int
    sent_bytes: int
    found_files: int
    """Files that were there already, whole."""


def export(lake: Lake, snapshot: str, uri: str, *, on_progress: OnProgress = silent) -> Carried:
    """Bring a snapshot into the lake at `uri`, which is made when there is none.

    Raises:
        NotFoundError: no such snapshot. DamagedError: something it pins is damaged; nothing becomes visible there.
    """
    from agent_world.lake.lake import open_lake

    return take(open_lake(uri), lake, snapshot, on_progress=on_progress)


def import_from(lake: Lake, uri: str, *, on_progress: OnProgress = silent) -> list[Carried]:
    """Take every snapshot of the lake at `uri`.

    Raises:
        NotALakeError, NotFoundError: no lake or no snapshot there. DamagedError: as in `export`.
    """
    from agent_world.lake.lake import open_lake

    source = open_lake(uri, create=False)
    snapshots = ids(source)
    if not snapshots:
        raise NotFoundError("snapshot", uri, why=f"{uri} has no snapshot; make one there with `snapshot create`")
    return [take(lake, source, snapshot, on_progress=on_progress) for snapshot in snapshots]


def take(lake: Lake, source: Lake, snapshot: str, *, on_progress: OnProgress = silent) -> Carried:
    """Bring a snapshot of `source` into `lake`: prove it, send its blobs, then make it visible in one commit.

    Batches that `lake` has already stay as they are, so that taking twice changes nothing; blobs that were damaged
    there since are sent again.

    Raises:
        NotFoundError: no such snapshot. DamagedError: something it pins is damaged.
        ConflictError: `lake` has a batch of the same name with other content.
    """
    carried = _bring(lake, source, snapshot, on_progress)
    lake.refresh()  # when what the proof had read is gone: both are as large as a lake
    return carried


def _bring(lake: Lake, source: Lake, snapshot: str, on_progress: OnProgress) -> Carried:
    proof = Proof(source, snapshot)
    for problem in _problems(proof, on_progress):
        raise DamagedError(f"snapshot {proof.snapshot[:12]} of {source.uri}: {problem.what}", problem.why)
    with lake.begin(STAGE, proof.snapshot, derivation=proof.snapshot) as batch:
        if not batch.done:
            _check_conflicts(lake, proof)
        sent = list(_send(lake, source, blob_files.places_by_file(proof.view.table("blobs")), on_progress))
        if not batch.done:
            batch.bring(proof.view.table("events"))
            record(batch, proof.snapshot, proof.manifest["events_version"], proof.data)
    bring_signatures(lake, proof.now, proof.snapshot)
    moved = [size for size in sent if size is not None]
    return Carried(proof.snapshot, len(moved), sum(moved), len(sent) - len(moved))


def _problems(proof: Proof, on_progress: OnProgress) -> Iterator[Problem]:
    yield from proof.files(on_progress)
    yield from proof.events()
    yield from proof.trees()
    yield from proof.tables(on_progress)


def _check_conflicts(lake: Lake, proof: Proof) -> None:
    pinned = {batch["batch"]: batch["sha256"] for batch in proof.manifest["batches"]}
    mine = having(lake.table("events"), batch=list(pinned))
    for found in batch_digests(mine):
        if found.sha256 != pinned[found.batch]:
            raise ConflictError(lake.uri, found.batch)


def _send(lake: Lake, source: Lake, places: dict[str, list[Place]], on_progress: OnProgress) -> Iterator[int | None]:
    """Of each file the bytes that were sent; None when it was there."""
    sizes, there = blob_files.sizes(source.storage), blob_files.sizes(lake.storage)

    def send(key: str) -> int | None:
        size = sizes.get(key)
        if size is None:
            raise DamagedError(f"{key} of {source.uri}", "the file is missing")
        if there.get(key) == size:
            found = blob_files.prove(lake.storage, key, size, places[key])
            if found is not None and found.why() is None:
                return None
        proof = blob_files.FileProof(key, places[key])

        def proved() -> Iterator[bytes]:
            yield from proof.of(pieces(source.storage, key, size))
            why = proof.why()
            if why:  # before the last byte is there, so that nothing of it is seen
                raise DamagedError(f"{key} of {source.uri}", why)

        reach("carry")
        lake.storage.write_from(key, proved())
        reach("carried")
        return size

    done, of = 0, sum(sizes.get(key, 0) for key in places)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            for key, sent in zip(places, pool.map(send, places), strict=True):
                done += sizes[key]
                on_progress("blobs", done, of)
                yield sent
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def branch(lake: Lake, source: Lake, through: int, *, on_progress: OnProgress = silent) -> None:
    """Bring what `source` held at a version of its events into `lake`, with all blobs that were known then.

    Raises:
        NotFoundError: there is no such version. DamagedError: a blob is damaged.
    """
    view = source.at(through)
    with lake.begin("branch", str(through), derivation=sha256(f"{source.uri} {through}")) as batch:
        if not batch.done:
            for _ in _send(lake, source, blob_files.places_by_file(view.table("blobs")), on_progress):
                pass
            batch.bring(view.table("events"))
