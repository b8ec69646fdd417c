"""What can be asked of a lake as it stood at one point: rows, payloads, files, names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agent_world.identity import VersionId
from agent_world.lake import rows
from agent_world.lake.blobs import BlobReader, Leaf
from agent_world.lake.errors import NotFoundError, near
from agent_world.lake.fold import payload_of
from agent_world.lake.log import EventLog
from agent_world.lake.tables import Index, Tables
from lake_schemas import EVENTS

if TYPE_CHECKING:
    from agent_world.lake.graph import Graph
    from agent_world.lake.live_graph import LiveGraph


class View:
    """Tables at one point in time over the log and the blobs they rest on."""

    def __init__(self, log: EventLog, blobs: BlobReader, tables: Tables) -> None:
        self.log, self.blobs, self.tables = log, blobs, tables
        self._versions = Index(lambda: tables.table("versions"), "version_id")
        self._batches = Index(lambda: tables.table("batches"), "batch")

    @cached_property
    def _graph(self) -> LiveGraph:
        from agent_world.lake.live_graph import LiveGraph

        return LiveGraph(self.tables)

    @property
    def graph(self) -> Graph:
        """The lineage graph, brought up to now."""
        return self._graph.now().graph

    def table(self, name: str) -> pa.Table:
        """A whole table in Arrow, `events` included; JSON columns stay text.

        Raises:
            NotFoundError: there is no such table.
        """
        return self.tables.events() if name == "events" else self.tables.table(name)

    def rows(
        self, table: str, *, where: rows.Where | None = None, columns: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Rows of a table, or of `events`, in commit order, JSON columns decoded.

        Raises:
            NotFoundError: no such table or column. BadRowError: a value that cannot be compared with its column.
        """
        spec = EVENTS if table == "events" else rows.spec_of(table)
        return rows.select(spec, self.table(table), where, columns)

    def payload(self, version_id: VersionId) -> dict[str, Any]:
        """What the version is, as it was created, in the words of today.

        Raises:
            NotFoundError: no such version.
        """
        events = self.batch_events(self.version(version_id)["batch"])
        created = rows.having(events, version_id=version_id, event_type="created")
        columns = ("schema_version", "event_type", "kind", "payload", "payload_blob")
        return dict(payload_of(*created.select(columns).to_pylist()[0].values(), self.blobs.read))

    def files(self, version_id: VersionId) -> dict[str, bytes]:
        """The files of the version by path; empty when it has none.

        Raises:
            NotFoundError: no such version. DamagedError: bytes that are missing or wrong.
        """
        root = self.version(version_id)["blob_root"]
        return {} if root is None else {leaf.path: self.blobs.read(leaf.sha256) for leaf in self.tree(root)}

    def blob(self, digest: str) -> bytes:
        """The bytes with this sha256.

        Raises:
            NotFoundError: the lake has no such blob. DamagedError: bytes that are missing or wrong.
        """
        return self.blobs.read(digest)

    def tree(self, root: str) -> list[Leaf]:
        """The leaves of a blob tree; empty when the lake has no such tree."""
        return [Leaf(**leaf) for leaf in self.rows("trees", where={"root": root}, columns=Leaf._fields)]

    def version(self, version_id: VersionId) -> dict[str, Any]:
        """The row of table `versions`.

        Raises:
            NotFoundError: no such version.
        """
        row = self._versions.row(version_id)
        if row is None:
            artifacts = self.tables.table("versions").column("artifact_id").to_pylist()
            raise NotFoundError("version", version_id, near(version_id.rpartition("@")[0] or version_id, artifacts))
        return row

    def has(self, version_id: VersionId) -> bool:
        """Whether there is such a version."""
        return self._versions.row(version_id) is not None

    def kind_of(self, version_id: VersionId) -> str:
        """The kind of a version.

        Raises:
            NotFoundError: no such version.
        """
        return self.version(version_id)["kind"]

    def has_batch(self, batch: str) -> bool:
        """Whether the batch is committed."""
        return self._batches.row(batch) is not None

    def batch_events(self, batch: str) -> pa.Table:
        """The events of one batch, in order.

        Raises:
            NotFoundError: no such batch.
        """
        row = self._batches.row(batch)
        if row is None:
            raise NotFoundError("batch", batch)
        return rows.having(self.log.commit(row["commit_version"]), batch=batch)

    def find(self, ref: str) -> VersionId:
        """As `resolve`, among artifacts of every kind.

        Raises:
            NotFoundError: nothing, or more than one thing, is called `ref`.
        """
        if self.has(VersionId(ref)):
            return VersionId(ref)
        names = self.tables.table("versions").select(["kind", "artifact_id"])
        pairs = list(zip(*(column.to_pylist() for column in names.columns), strict=True))
        start = ref.partition("@")[0]
        kinds = dict.fromkeys(kind for kind, artifact in pairs if artifact == start) or dict.fromkeys(
            kind for kind, artifact in pairs if start and artifact.startswith(start)
        )
        if not kinds:
            raise NotFoundError("artifact", ref, near(ref, [artifact for _, artifact in pairs]))
        found: list[VersionId] = []
        for kind in kinds:
            try:
                found.append(self.resolve(kind, ref))
            except NotFoundError:
                if len(kinds) == 1:
                    raise
        if len(found) != 1:
            why = f"{ref!r} may mean any of these kinds: {', '.join(kinds)}"
            raise NotFoundError("artifact", ref, [f"{version} ({self.kind_of(version)})" for version in found], why)
        return found[0]

    def resolve(self, kind: str, ref: str) -> VersionId:
        """The exact version that `ref` means: a version, an artifact (its current version), or a unique start of one.

        Raises:
            NotFoundError: nothing, or more than one thing, is called `ref`; near matches are named.
        """
        spec = rows.spec_of_kind(kind)
        known = self._versions.row(ref)
        if known is not None and known["kind"] == kind:
            return VersionId(ref)
        found = self.tables.table(spec.name).select(["version_id", "artifact_id", "state"])
        versions, artifacts, states = (column.to_pylist() for column in found.columns)
        current = {a: v for v, a, state in zip(versions, artifacts, states, strict=True) if state == "created"}
        if ref in current:
            return VersionId(current[ref])
        if ref in artifacts:
            raise NotFoundError(kind, ref, why=f"every version of {kind} {ref!r} is retired or superseded")
        names = versions if "@" in ref else current
        matches = sorted(name for name in names if ref and name.startswith(ref))
        if len(matches) == 1:
            return VersionId(current.get(matches[0], matches[0]))
        if matches:
            raise NotFoundError(kind, ref, matches[:3], f"{len(matches)} {kind} names begin with {ref!r}")
        raise NotFoundError(kind, ref, near(ref, artifacts))
