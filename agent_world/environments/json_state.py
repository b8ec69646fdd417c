"""The state of an environment that is one JSON object: its logical digest, and what changed between two of them.

The object is taken apart into entries: a key of it and, where an object stands there, a key of that; so its first level
names tables and its second one rows. A session logs the entries that its calls changed, and digest and diff follow
those. The order of keys and how numbers are spelt are no part of the state.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from agent_world.environments.difference import JsonRow, StateDiff, keyed_diff
from agent_world.environments.errors import CorruptStateError
from agent_world.environments.keeping import Keeper
from agent_world.environments.model import STATE_FILE, Json, Table
from agent_world.environments.row_sum import RowSum
from agent_world.environments.sealed import SealedState
from agent_world.environments.state import EnvironmentState
from agent_world.identity import Digest, canonical_json, sha256
from agent_world.sandbox import strict_json
from agent_world.sandbox.memory import MemoryFile

Path = tuple[str, ...]
Entries = Mapping[Path, str]
"""The canonical JSON of each entry by its path of one key or two."""

_KEY, _VALUE = "key", "value"


class JsonSnapshot:
    """The bytes of one JSON object with what follows from them."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)

    @cached_property
    def document(self) -> Mapping[str, Json]:
        """The object.

        Raises:
            CorruptStateError: it is none.
        """
        try:
            document = strict_json.loads(self.files.get(STATE_FILE, b"{}"))
        except ValueError as error:
            raise CorruptStateError(f"{STATE_FILE}: {error}") from None
        if not isinstance(document, dict):
            raise CorruptStateError(f"{STATE_FILE} holds no object")
        return document

    @cached_property
    def memory(self) -> MemoryFile:
        """The object in sealed memory that every session shares; its keys in order, as their order is no state."""
        return MemoryFile(canonical_json(self.document).encode())

    @cached_property
    def entries(self) -> Entries:
        """Its entries."""
        entries: dict[Path, str] = {}
        for key, value in self.document.items():
            if isinstance(value, dict) and value:
                entries |= {(key, name): canonical_json(item) for name, item in value.items()}
            else:
                entries[(key,)] = canonical_json(value)
        return entries

    @cached_property
    def sum(self) -> RowSum:
        """The digest of its entries."""
        return RowSum().changed((), map(_row, self.entries.items()))


class JsonState(EnvironmentState):
    """One state: a snapshot, and its entries that are now other ones (None: gone)."""

    def __init__(self, snapshot: JsonSnapshot, changes: Mapping[Path, str | None]) -> None:
        self.snapshot = snapshot
        self.changes = {path: text for path, text in changes.items() if snapshot.entries.get(path) != text}

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The whole state as files."""
        if not self.changes:
            return self.snapshot.files
        document: dict[str, Json] = {}
        for path, text in {**self.snapshot.entries, **self.changes}.items():
            if text is None:
                continue
            if len(path) == 1:
                document[path[0]] = json.loads(text)
            else:
                document.setdefault(path[0], {})[path[1]] = json.loads(text)
        return {**self.snapshot.files, STATE_FILE: canonical_json(document).encode()}

    @property
    def untouched(self) -> bool:
        """Whether its files are those of the snapshot."""
        return not self.changes

    def sealed(self) -> SealedState:
        """The whole state in sealed memory."""
        memory = JsonSnapshot(self.files).memory if self.changes else self.snapshot.memory
        return SealedState("json", memory, MemoryFile(b""), {})

    @cached_property
    def digest(self) -> Digest:
        """The logical digest."""
        old = {path: self.snapshot.entries[path] for path in self.changes if path in self.snapshot.entries}
        new = {path: text for path, text in self.changes.items() if text is not None}
        total = self.snapshot.sum.changed(map(_row, old.items()), map(_row, new.items()))
        return sha256(canonical_json({"state": total.as_json()}))

    def entry(self, path: Path) -> str | None:
        """The canonical JSON of one entry; None when there is none."""
        return self.changes[path] if path in self.changes else self.snapshot.entries.get(path)

    def since(self, before: JsonState, tables: Sequence[Table]) -> StateDiff:
        """What differs from `before` to here, by the keys of the object.

        Entries of an object are rows with their key in the column ``key``, the elements of a list of objects are rows
        that `tables` may name keys for, anything else is the one row ``{"value": ...}``. An empty object or list is a
        table without rows.
        """
        paths = {*before.changes, *self.changes}
        if before.snapshot is not self.snapshot:
            paths |= {*before.snapshot.entries, *self.snapshot.entries}
        keys = {table.name: table.primary_key for table in tables}
        gone: dict[str, list[tuple[JsonRow, JsonRow]]] = {}
        come: dict[str, list[tuple[JsonRow, JsonRow]]] = {}
        for path in sorted(paths):
            old, new = before.entry(path), self.entry(path)
            if old != new:
                removed, added = _rows(path, old, keys), _rows(path, new, keys)
                gone.setdefault(path[0], []).extend(_without(removed, added))
                come.setdefault(path[0], []).extend(_without(added, removed))
        found = {name: keyed_diff(gone[name], come[name]) for name in gone if gone[name] or come[name]}
        return StateDiff(tables=found)

    def __reduce__(self) -> tuple[Any, ...]:
        return json_state, (dict(self.files),)


def json_state(files: Mapping[str, bytes]) -> JsonState:
    """The state that these files are."""
    return JsonState(snapshot_of(files), {})


def read_json_state(snapshot: JsonSnapshot, log: bytes) -> JsonState:
    """The state of a session over `snapshot`, from its log (guest/tools.py: `ClassTools`).

    What follows the last newline is of a call that never came to its end.

    Raises:
        CorruptStateError: the log is not what the guest writes.
    """
    changes: dict[Path, str | None] = {}
    for line in log.split(b"\n")[:-1]:
        try:
            edits = strict_json.loads(line)
        except ValueError as error:
            raise CorruptStateError(f"the log of the state: {error}") from None
        if not isinstance(edits, list):
            raise CorruptStateError("the log of the state has a line that is no list of edits")
        for edit in edits:
            changes[_path(edit)] = canonical_json(edit[1]) if len(edit) == 2 else None
    return JsonState(snapshot, changes)


_snapshots = Keeper(JsonSnapshot)


def snapshot_of(files: Mapping[str, bytes]) -> JsonSnapshot:
    """The snapshot of these files; the same one for the same bytes, while it is among the last used."""
    return _snapshots.of(files)


def _path(edit: Json) -> Path:
    if isinstance(edit, list) and len(edit) in (1, 2) and isinstance(edit[0], list) and len(edit[0]) in (1, 2):
        if all(isinstance(key, str) for key in edit[0]):
            return tuple(edit[0])
    raise CorruptStateError("the log of the state has an edit that is none")


def _row(entry: tuple[Path, str]) -> tuple[str, str]:
    return canonical_json(entry[0]), entry[1]


def _rows(path: Path, text: str | None, keys: Mapping[str, Sequence[str]]) -> list[tuple[JsonRow, JsonRow]]:
    """The rows that an entry stands for, each with its key."""
    if text is None:
        return []
    value = json.loads(text)
    if len(path) == 2:
        flat = isinstance(value, dict) and _KEY not in value
        return [({_KEY: path[1]}, {_KEY: path[1], **(value if flat else {_VALUE: value})})]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return [] if value == {} else [({}, {_VALUE: value})]
    key = keys.get(path[0], ())
    return [({name: row[name] for name in key} if key and row.keys() >= set(key) else row, row) for row in value]


def _without(rows: Sequence[tuple[JsonRow, JsonRow]], others: Sequence[tuple[JsonRow, JsonRow]]) -> list[Any]:
    """The rows that are not among the others, as often as they are there more often."""
    left = Counter(canonical_json(row) for _, row in others)
    kept = []
    for key, row in rows:
        text = canonical_json(row)
        if left[text]:
            left[text] -= 1
        else:
            kept.append((key, row))
    return kept
