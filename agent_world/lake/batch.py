"""One unit of work: everything that a step makes, committed exactly once or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from agent_world import identity
from agent_world.identity import Digest, VersionId, artifact_id_of, canonical_json, sha256
from agent_world.lake import rows
from agent_world.lake.blobs import BlobWriter, Leaf, tree
from agent_world.lake.errors import BadRowError
from agent_world.lake.log import SCHEMA, Commit, Committed, Draft
from lake_schemas import lifts

if TYPE_CHECKING:
    from agent_world.lake.lake import Lake

INLINE_BYTES = 64 << 10
"""A larger payload becomes a blob."""

_PLACES_AN_EVENT = 256


def batch_id(stage: str, partition: str, derivation: str) -> Digest:
    """The logical key of a batch: what is committed exactly once."""
    return sha256(canonical_json([stage, partition, derivation]))


class Batch:
    """Use it with ``with lake.begin(...) as batch``: leaving without an exception commits once, else nothing is seen.

    `done` says that this (stage, partition, derivation) is in the lake already: skip the work; `versions` are then
    what it made. An id given out here is visible to readers only after the commit.
    """

    def __init__(
        self, lake: Lake, stage: str, partition: str, derivation: str, run_id: str | None, code_version: str
    ) -> None:
        self.stage, self.partition, self.derivation = stage, partition, derivation
        self.run_id, self.code_version = run_id, code_version
        self.id = batch_id(stage, partition, derivation)
        self.begun = lake.events_version()
        self.done = lake.has_batch(self.id)
        self.commit: Commit | None = None
        self.lake = lake
        self._blobs = BlobWriter(lake.storage, lake.blobs.place)
        self._roots: set[str] = set()
        self._events: list[dict[str, Any]] = []
        self._created: dict[VersionId, tuple[str, Mapping[str, Any]]] = {}
        self.made: list[VersionId] = []
        self._times: Counter[str] = Counter()
        self._brought = SCHEMA.empty_table()
        self._held = ExitStack()

    @property
    def versions(self) -> tuple[VersionId, ...]:
        """What this batch made, in order; of a batch that is done, what it made then."""
        if not self.done:
            return tuple(self.made)
        events = self.lake.batch_events(self.id)
        names = zip(*(events.column(n).to_pylist() for n in ("version_id", "content_hash", "event_type")), strict=True)
        return tuple(version for version, content, what in names if content and what in ("created", "observed"))

    def put(self, files: Mapping[str, bytes]) -> Digest:
        """Keep files as a tree of blobs; gives its root. They are visible with the commit."""
        root, leaves = tree(Leaf(path, self._blobs.add(data), len(data)) for path, data in files.items())
        if root not in self._roots and not self.lake.tree(root):
            self._roots.add(root)
            self._emit("listed", payload={"root": root, "leaves": [list(leaf) for leaf in leaves]}, inline=True)
        return root

    def blob(self, data: bytes) -> Digest:
        """Keep one blob; gives its sha256."""
        return self._blobs.add(data)

    def payload(self, version_id: VersionId) -> Mapping[str, Any]:
        """What a version is, also one that this batch made and nobody else can see yet.

        Raises:
            NotFoundError: no such version.
        """
        return self._created[version_id][1] if version_id in self._created else self.lake.payload(version_id)

    def create(
        self,
        kind: str,
        artifact_id: str,
        payload: Mapping[str, Any],
        *,
        parents: Sequence[tuple[VersionId, str]] = (),
        files: Mapping[str, bytes] | None = None,
        blob_in_identity: bool = True,
    ) -> VersionId:
        """Make a version of an artifact; the same content again is an observation of the version that exists.

        `parents` are exact versions with their roles. With `blob_in_identity` off, `payload` alone says what the
        artifact is and the files are transport (a database's logical digest stands in its payload).

        Raises:
            BadRowError: a value that does not fit the table of `kind`. NotFoundError: an unknown kind or parent.
        """
        spec = rows.spec_of_kind(kind)
        rows.check(spec, [c for c in spec.columns if not c.observed], payload, strict=False)
        text = rows.canonical(spec, payload)
        self._check_id(spec.name, artifact_id)
        for parent, _ in parents:
            self._kind_of(parent)
        root = self.put(files) if files is not None else None
        content = identity.content_hash(kind, payload, root if blob_in_identity else None)
        version = identity.version_id(artifact_id, content)
        again = version in self._created or self.lake.has(version)
        self._emit(
            "observed" if again else "created",
            kind=kind,
            artifact_id=artifact_id,
            version_id=version,
            content_hash=content,
            derivation_hash=self._derivation(kind, artifact_id, [parent for parent, _ in parents]),
            parents=[{"version_id": parent, "role": role} for parent, role in dict.fromkeys(parents)],
            blob_root=root,
            text=None if again else text,
        )
        self._created[version] = (kind, payload)
        self.made.append(version)
        return version

    def observe(self, version_id: VersionId, fields: Mapping[str, Any]) -> None:
        """Say what was measured or seen about a version, in its `observed` columns; the last word counts.

        Raises:
            BadRowError: a field that is not an observed column of its table. NotFoundError: no such version.
        """
        kind = self._kind_of(version_id)
        spec = rows.spec_of_kind(kind)
        rows.check(spec, [c for c in spec.columns if c.observed], fields, strict=True)
        self._emit(
            "observed",
            kind=kind,
            artifact_id=artifact_id_of(version_id),
            version_id=version_id,
            text=rows.canonical(spec, fields),
        )

    def record(self, table: str, row: Mapping[str, Any]) -> None:
        """Add a row to a fact table.

        Raises:
            BadRowError: a column that is not there or a value that does not fit. NotFoundError: no such table.
        """
        spec = rows.spec_of(table)
        if spec.shape != "fact":
            raise BadRowError(table, "*", "rows are recorded in fact tables only; create an artifact instead")
        rows.check(spec, spec.columns, row, strict=True)
        self._emit("recorded", kind=table, text=rows.canonical(spec, row))

    def quarantine(self, *, stage: str, item: str, reason: str, detail: str, raw: bytes) -> None:
        """Set aside an item that could not be used, with its raw bytes."""
        row = {"stage": stage, "item": item, "reason": reason, "detail": detail, "raw_blob": self._blobs.add(raw)}
        self.record("quarantine", row)

    def retire(self, version_id: VersionId, reason: str, evidence: Mapping[str, Any] | None = None) -> None:
        """Say that a version is no longer to be used, and what shows it; it stays readable and in lineage."""
        self._emit(
            "retired",
            kind=self._kind_of(version_id),
            artifact_id=artifact_id_of(version_id),
            version_id=version_id,
            payload={"reason": reason, **({"evidence": evidence} if evidence else {})},
        )

    def reinstate(self, version_id: VersionId, state: Literal["created", "superseded"], reason: str) -> None:
        """Say that a retired version may be used again, in the `state` that it had before.

        It becomes the current version of its artifact only where there is none.
        """
        self._emit(
            "reinstated",
            kind=self._kind_of(version_id),
            artifact_id=artifact_id_of(version_id),
            version_id=version_id,
            payload={"reason": reason, "state": state},
        )

    def alarm(self, version_id: VersionId, derivation: str, second: str) -> None:
        """Say that the derivation which gave `version_id` has given other content (its hash is `second`) as well."""
        self._emit(
            "diverged",
            kind=self._kind_of(version_id),
            artifact_id=artifact_id_of(version_id),
            version_id=version_id,
            derivation_hash=derivation,
            payload={"second": second},
        )

    def __enter__(self) -> Batch:
        self._held.enter_context(self.lake.in_flight())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            if kind is None:
                self.lake.commit(self)

    def reuse(self) -> None:
        """Note that a later run found batch `partition` done; moves no projection."""
        self._emit("reused", payload={"batch": self.partition}, inline=True)

    def finish(self) -> None:
        """Write what is still pending of the blobs, say where they lie, and close the batch."""
        self._blobs.flush()
        places = self._blobs.places
        for start in range(0, len(places), _PLACES_AN_EVENT):
            listed = [list(place) for place in places[start : start + _PLACES_AN_EVENT]]
            self._emit("stored", payload={"blobs": listed}, inline=True)
        self._emit("committed", payload={"events": len(self._events) + 1}, inline=True)

    def bring(self, events: pa.Table) -> None:
        """Commit, together with this batch, those batches among `events` of another lake that this one has not."""
        self._brought = events

    def draft(self, commit_version: int, committed: Committed, now: datetime) -> Draft:
        """The rows of this batch, behind those it brings, for a commit at `commit_version`."""
        named = self._brought.column("batch").unique().to_pylist()
        batches = [batch for batch in named if not committed(batch)]
        # As it is where all of it is new: a copy of a whole lake is dear.
        brought = self._brought if batches == named else rows.having(self._brought, batch=batches)
        events = pa.concat_tables([brought, self._rows(now)])
        count = events.num_rows
        physical = {"commit_version": pa.repeat(commit_version, count), "position": pa.array(range(count), pa.int64())}
        return Draft(pa.table({f.name: physical.get(f.name, events.column(f.name)) for f in SCHEMA}, SCHEMA), batches)

    def _rows(self, now: datetime) -> pa.Table:
        stamp = {
            "batch": self.id,
            "stage": self.stage,
            "partition": self.partition,
            "derivation": self.derivation,
            "run_id": self.run_id,
            "code_version": self.code_version,
            "schema_version": lifts.newest(),
            "ts": now.astimezone(UTC),
        }
        stamped = [event | stamp | {"event_id": f"{self.id[:32]}:{place}"} for place, event in enumerate(self._events)]
        columns = {f.name: pa.array([event.get(f.name) for event in stamped], f.type) for f in SCHEMA}
        return pa.table(columns, schema=SCHEMA)

    def contents(self) -> dict[str, str]:
        """Content hash by derivation, as made here."""
        return {event["derivation_hash"]: event["content_hash"] for event in self._events if event.get("content_hash")}

    def _emit(
        self,
        event_type: str,
        *,
        payload: Mapping[str, Any] | None = None,
        text: str | None = None,
        inline: bool = False,
        **columns: Any,
    ) -> None:
        if payload is not None:
            text = canonical_json(payload)
        blob = None
        if text is not None and not inline and len(text) * 4 > INLINE_BYTES and len(text.encode()) > INLINE_BYTES:
            text, blob = None, self._blobs.add(text.encode())
        self._events.append({"event_type": event_type, "payload": text, "payload_blob": blob, **columns})

    def _derivation(self, kind: str, artifact_id: str, parents: Sequence[str]) -> Digest:
        """How this version is made, exactly: the batch, the artifact, and which of its versions in the batch it is."""
        self._times[artifact_id] += 1
        what = {"batch": self.id, "kind": kind, "artifact": artifact_id, "time": self._times[artifact_id]}
        return identity.derivation_hash(self.code_version, what, parents)

    def _kind_of(self, version_id: VersionId) -> str:
        return self._created[version_id][0] if version_id in self._created else self.lake.kind_of(version_id)

    @staticmethod
    def _check_id(table: str, artifact_id: str) -> None:
        if not artifact_id or "@" in artifact_id or artifact_id != artifact_id.strip() or not artifact_id.isprintable():
            raise BadRowError(table, "artifact_id", f"{artifact_id!r} must be printable, without @ and outer spaces")
