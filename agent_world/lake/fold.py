"""Projections folded from events: one object a table, fed with events in order, giving an Arrow table at any time.

Feeding a table in many small steps gives the same table as feeding it at once: that is what `replay --verify` proves.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from agent_world.lake.rows import cell, extract, having
from lake_schemas import TABLES, ColumnSpec, TableSpec
from lake_schemas.lifts import lifted

FOLD = 2
"""Version of the meaning of events; projections folded under another one are folded anew."""

ReadBlob = Callable[[str], bytes]

_DECODED = 4096
"""Payloads that are decoded at once: in Python they take ten times the room of their text."""

_SAID = ("schema_version", "event_type", "kind", "payload", "payload_blob")
_ABOUT = ("version_id", "artifact_id", "content_hash")
_NODE = ("version_id", "artifact_id", "kind", "content_hash", "derivation_hash", "blob_root", "batch")
_ENVELOPE = ("content_hash", "derivation_hash", "blob_root", "run_id", "partition")


class Fold(Protocol):
    """One projection."""

    spec: TableSpec
    kept: int
    """How many leading rows are as they were when the fold began or was last settled; rows behind them are new."""

    def apply(self, events: pa.Table) -> None:
        """Take the next events, in order."""
        ...

    def table(self) -> pa.Table:
        """The projection as it stands."""
        ...

    def settle(self) -> None:
        """Count all rows as kept from here on."""
        ...


def open_fold(name: str, base: pa.Table | None, read_blob: ReadBlob) -> Fold:
    """The fold of table `name`, going on from `base` or from nothing."""
    spec = TABLES[name]
    if spec.shape == "artifact":
        return _Artifacts(spec, base, read_blob)
    if spec.shape == "fact":
        return _Facts(spec, base, read_blob)
    if name == "versions":
        return _Versions(spec, base)
    if name == "edges":
        return _Edges(spec, base)
    return _Rows(spec, base, _DERIVED[name])


class _Appended:
    """An Arrow table that grows by chunks."""

    def __init__(self, schema: pa.Schema, base: pa.Table | None) -> None:
        self._schema = schema
        self._table = schema.empty_table() if base is None else base.select(schema.names).cast(schema)

    def __len__(self) -> int:
        return self._table.num_rows

    def add(self, columns: Mapping[str, Any]) -> None:
        more = pa.table({name: columns[name] for name in self._schema.names}, schema=self._schema)
        self._table = pa.concat_tables([self._table, more])
        if self._table.num_columns and self._table.column(0).num_chunks > 64:
            self._table = self._table.combine_chunks()

    def table(self) -> pa.Table:
        return self._table


class _Grown:
    """A table that grows at its end."""

    def __init__(self, spec: TableSpec, base: pa.Table | None) -> None:
        self.spec = spec
        self._appended = _Appended(_plain(spec), base)
        self.kept = len(self._appended)

    def table(self) -> pa.Table:
        return self._appended.table()

    def settle(self) -> None:
        self.kept = len(self._appended)


class _Rows(_Grown):
    """Rows made from events one by one; events may repeat a key, and the first of each is kept."""

    def __init__(self, spec: TableSpec, base: pa.Table | None, rows: Callable[[pa.Table], Mapping[str, Any]]) -> None:
        super().__init__(spec, base)
        self._rows = rows
        self._keys = set(_tuples(self._appended.table(), spec.key))

    def apply(self, events: pa.Table) -> None:
        more = _unseen(pa.table(self._rows(events), schema=_plain(self.spec)), self.spec.key, self._keys)
        if more.num_rows:
            self._appended.add({name: more.column(name) for name in more.column_names})


class _Facts(_Grown):
    """Recorded rows, of each key the newest: work that is done again, by other code say, replaces what it said."""

    def __init__(self, spec: TableSpec, base: pa.Table | None, read_blob: ReadBlob) -> None:
        super().__init__(spec, base)
        self._read_blob = read_blob
        self._keys = set(_tuples(self._appended.table(), spec.key))

    def apply(self, events: pa.Table) -> None:
        more = pa.table(_facts(self.spec, events, self._read_blob), schema=_plain(self.spec))
        if not more.num_rows:
            return
        newest = {key: place for place, key in enumerate(_tuples(more, self.spec.key))}
        if len(newest) < more.num_rows:
            more = more.take(pa.array(sorted(newest.values()), pa.int64()))
        self._drop(self._keys & newest.keys())
        self._keys |= newest.keys()
        self._appended.add({name: more.column(name) for name in more.column_names})

    def _drop(self, keys: set[tuple[Any, ...]]) -> None:
        if keys:
            table = self._appended.table()
            stay = [key not in keys for key in _tuples(table, self.spec.key)]
            self.kept = min(self.kept, stay.index(False))
            self._appended = _Appended(table.schema, table.filter(pa.array(stay)))


class _Artifacts:
    """One row a version: what it is never changes; its state and its observed columns do."""

    def __init__(self, spec: TableSpec, base: pa.Table | None, read_blob: ReadBlob) -> None:
        self.spec = spec
        self._read_blob = read_blob
        self._observed = {c.name: c for c in spec.columns if c.observed}
        self._payload = [c for c in spec.columns if not c.observed]
        self._changing = ["state", *self._observed]
        fixed = [field for field in _plain(spec) if field.name not in self._changing]
        self._fixed = _Appended(pa.schema(fixed), base)
        self._cells: dict[str, list[Any]] = {
            name: [] if base is None else base.column(name).to_pylist() for name in self._changing
        }
        rows = self._fixed.table().select(["version_id", "artifact_id"])
        self._row = {version: row for row, version in enumerate(rows.column("version_id").to_pylist())}
        self._revs: dict[str, int] = {}
        self._current: dict[str, int] = {}
        for row, artifact in enumerate(rows.column("artifact_id").to_pylist()):
            self._revs[artifact] = self._revs.get(artifact, 0) + 1
            if self._cells["state"][row] == "created":
                self._current[artifact] = row
        self.kept = len(self._row)
        self._table: pa.Table | None = None

    def apply(self, events: pa.Table) -> None:
        mine = having(events.select(["version_id", "artifact_id", *_SAID, *_ENVELOPE, "ts"]), kind=self.spec.kind)
        if not mine.num_rows:
            return
        about = _without_payloads(mine, "created")  # those are decoded together, and are most of the bytes
        self._table = None
        created: list[int] = []
        revs: list[int] = []
        for place, (version, artifact, content, *said) in enumerate(_tuples(about, (*_ABOUT, *_SAID))):
            what = said[1]
            row = self._row.get(version)
            if row is None:
                if what == "created":
                    created.append(place)
                    revs.append(self._create(version, artifact))
            elif what == "created" or (what == "observed" and content is not None):
                self._make_current(artifact, row)
            elif what == "observed":
                self._observe(row, payload_of(*said, self._read_blob))
            elif what == "retired":
                self._change("state", row, "retired")
                if self._current.get(artifact) == row:
                    del self._current[artifact]
            elif what == "reinstated":
                self._reinstate(artifact, row, payload_of(*said, self._read_blob)["state"])
        if created:
            self._append(mine if len(created) == mine.num_rows else mine.take(pa.array(created)), revs)

    def table(self) -> pa.Table:
        if self._table is None:
            fixed = self._fixed.table()
            changing = {name: self._cells[name] for name in self._changing}
            self._table = pa.table(
                {f.name: changing[f.name] if f.name in changing else fixed.column(f.name) for f in _plain(self.spec)},
                schema=_plain(self.spec),
            )
        return self._table

    def settle(self) -> None:
        self.kept = len(self._row)

    def _create(self, version: str, artifact: str) -> int:
        row = self._row[version] = len(self._row)
        for cells in self._cells.values():
            cells.append(None)
        self._make_current(artifact, row)
        rev = self._revs[artifact] = self._revs.get(artifact, 0) + 1
        return rev

    def _make_current(self, artifact: str, row: int) -> None:
        """A version that was retired stays so, whoever makes its content again."""
        if self._cells["state"][row] == "retired" or self._current.get(artifact) == row:
            return
        if artifact in self._current:
            self._change("state", self._current[artifact], "superseded")
        self._change("state", row, "created")
        self._current[artifact] = row

    def _reinstate(self, artifact: str, row: int, state: str) -> None:
        """Give a retired version its state back; it is current again only where no other has become so since."""
        if self._cells["state"][row] != "retired":
            return
        self._change("state", row, "superseded")
        if state == "created" and artifact not in self._current:
            self._make_current(artifact, row)

    def _observe(self, row: int, fields: Mapping[str, Any]) -> None:
        for name, value in fields.items():
            if name in self._observed:
                self._change(name, row, cell(self._observed[name], value))

    def _change(self, column: str, row: int, value: Any) -> None:
        self._cells[column][row] = value
        if row < self.kept:
            self.kept = row

    def _append(self, created: pa.Table, revs: Sequence[int]) -> None:
        columns: dict[str, Any] = {name: created.column(name) for name in ("version_id", "artifact_id", *_ENVELOPE)}
        columns["rev"] = pa.array(revs, type=pa.int64())
        columns["created_at"] = created.column("ts")
        self._fixed.add(columns | _extracted(self._payload, created, self._read_blob))


class _Versions(_Grown):
    """Every version of every kind, counted per artifact."""

    def __init__(self, spec: TableSpec, base: pa.Table | None) -> None:
        super().__init__(spec, base)
        known = self._appended.table()
        self._seen = set(known.column("version_id").to_pylist())
        self._revs = Counter(_tuples(known, ("kind", "artifact_id")))

    def apply(self, events: pa.Table) -> None:
        created = having(events.select([*_NODE, "event_type"]), event_type="created")
        fresh, revs = [], []
        for place, (version, kind, artifact) in enumerate(_tuples(created, ("version_id", "kind", "artifact_id"))):
            if version not in self._seen:
                self._seen.add(version)
                self._revs[kind, artifact] += 1
                fresh.append(place)
                revs.append(self._revs[kind, artifact])
        if fresh:
            created = created if len(fresh) == created.num_rows else created.take(pa.array(fresh))
            self._appended.add({name: created.column(name) for name in _NODE} | {"rev": pa.array(revs, pa.int64())})


class _Edges(_Grown):
    """Edges of every version; a version that was made again brings only those that it had not."""

    def __init__(self, spec: TableSpec, base: pa.Table | None) -> None:
        super().__init__(spec, base)
        self._children = set(self._appended.table().column("child").to_pylist())

    def apply(self, events: pa.Table) -> None:
        columns = events.select(["event_type", "version_id", "parents", "run_id"])
        made = having(columns, event_type=["created", "observed"])
        more = _exploded(made)
        known = self._children.intersection(more["child"].to_pylist())
        if known or len(set(made.column("version_id").to_pylist())) < made.num_rows:
            more = self._unknown(more, known)
        self._children.update(more["child"].to_pylist())
        if more.num_rows:
            self._appended.add({name: more.column(name) for name in more.column_names})

    def _unknown(self, more: pa.Table, known: set[str]) -> pa.Table:
        before = having(self._appended.table(), child=sorted(known))
        return _unseen(more, self.spec.key, set(_tuples(before, self.spec.key)))


def _unseen(rows: pa.Table, key: Sequence[str], seen: set[tuple[Any, ...]]) -> pa.Table:
    """The rows whose key is not among `seen`, the first of each; their keys are added to it."""
    fresh = []
    for place, values in enumerate(_tuples(rows, key)):
        if values not in seen:
            seen.add(values)
            fresh.append(place)
    return rows.take(pa.array(fresh, pa.int64()))


def _exploded(made: pa.Table) -> pa.Table:
    """One row a parent."""
    parents = made.column("parents").combine_chunks()
    flat = pc.list_flatten(parents)
    places = pc.list_parent_indices(parents)
    columns = [
        made.column("version_id").take(places),
        pc.struct_field(flat, "version_id"),
        pc.struct_field(flat, "role"),
        made.column("run_id").take(places),
    ]
    return pa.table(columns, schema=_plain(TABLES["edges"]))


def _facts(spec: TableSpec, events: pa.Table, read_blob: ReadBlob) -> Mapping[str, Any]:
    mine = having(events, event_type="recorded", kind=spec.name)
    envelope = {"event_id": mine.column("event_id"), "run_id": mine.column("run_id"), "recorded_at": mine.column("ts")}
    return envelope | _extracted(spec.columns, mine, read_blob)


def _blobs(events: pa.Table) -> Mapping[str, Any]:
    stored = having(events, event_type="stored")
    return _columns(TABLES["blobs"], [place for row in _payloads(stored, None) for place in row["blobs"]])


def _trees(events: pa.Table) -> Mapping[str, Any]:
    listed = having(events, event_type="listed")
    leaves = [(row["root"], *leaf) for row in _payloads(listed, None) for leaf in row["leaves"]]
    return _columns(TABLES["trees"], leaves)


def _batches(events: pa.Table) -> Mapping[str, Any]:
    ends = having(events, event_type="committed")
    counts = pa.array([payload["events"] for payload in _payloads(ends, None)], type=pa.int64())
    named = {name: ends.column(name) for name in _plain(TABLES["batches"]).names if name in ends.column_names}
    return named | {"events": counts, "committed_at": ends.column("ts")}


_DERIVED: dict[str, Callable[[pa.Table], Mapping[str, Any]]] = {
    "blobs": _blobs,
    "trees": _trees,
    "batches": _batches,
}


def _without_payloads(events: pa.Table, event_type: str) -> pa.Table:
    """The events; what those of one type say is left out."""
    place = events.column_names.index("payload")
    said = pc.if_else(pc.equal(events.column("event_type"), event_type), None, events.column(place))
    return events.set_column(place, "payload", said)


def _extracted(
    columns: Sequence[ColumnSpec], events: pa.Table, read_blob: ReadBlob | None
) -> dict[str, pa.Array | pa.ChunkedArray]:
    """What the payloads of `events` say in these columns."""
    parts = [
        extract(columns, list(_payloads(events.slice(start, _DECODED), read_blob)))
        for start in range(0, events.num_rows, _DECODED)
    ]
    return {c.name: pa.chunked_array([part[c.name] for part in parts], c.type).combine_chunks() for c in columns}


def _payloads(events: pa.Table, read_blob: ReadBlob | None) -> Iterator[Mapping[str, Any]]:
    for said in _tuples(events, _SAID):
        yield payload_of(*said, read_blob)


def payload_of(
    version: int, event_type: str, kind: str | None, payload: str | None, blob: str | None, read_blob: ReadBlob | None
) -> Mapping[str, Any]:
    """What an event says, in the words of today: of `version` its schema, `payload` or the blob that holds it."""
    if payload is None and blob is not None and read_blob is not None:
        payload = read_blob(blob).decode()
    return lifted(version, event_type, kind, json.loads(payload or "{}"))


def _columns(spec: TableSpec, rows: Sequence[Sequence[Any]]) -> Mapping[str, Any]:
    columns = list(zip(*rows, strict=True)) or [()] * len(spec.columns)
    return {c.name: pa.array(values, type=c.type) for c, values in zip(spec.columns, columns, strict=True)}


def _tuples(table: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def _plain(spec: TableSpec) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type) for column in spec.all_columns])
