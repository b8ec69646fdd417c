"""The state of an environment: its logical digest, what changed between two states, and that change in a form two runs share.

The digest covers the schema, the typed rows of every table and the documents; not the bytes of the SQLite file, which
depend on the order of writing. A state that a session left is a snapshot plus what the session changed, so that digest
and diff cost what the change costs.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agent_world.environments import change_log, pages
from agent_world.environments.change_log import Changes
from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import DOCUMENTS_FOLDER, SQLITE_FILE, Database, Json, Table
from agent_world.environments.pages import PageFile
from agent_world.environments.snapshot import Row, Snapshot, TableSchema, connect, rows, snapshot_of, with_log
from agent_world.identity import Digest, canonical_json, sha256

JsonRow = Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A row whose key stayed and whose other values did not: both whole rows."""

    key: JsonRow
    before: JsonRow
    after: JsonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDiff:
    """What happened to one table, each part in the order of the rows' canonical JSON."""

    added: tuple[JsonRow, ...] = ()
    removed: tuple[JsonRow, ...] = ()
    changed: tuple[RowChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChange:
    """A document's text before and after; None where it did not exist. Bytes that are no text are base64."""

    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDiff:
    """What differs between two states; tables and documents that do not differ are absent. False when nothing does."""

    tables: Mapping[str, TableDiff] = field(default_factory=dict)
    documents: Mapping[str, DocumentChange] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.tables or self.documents)


class State:
    """One state of `D`, in the layout of `Environment.files`."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.snapshot: Snapshot = snapshot_of(files)
        self.changes: Changes = _NO_CHANGES

    @classmethod
    def after(cls, snapshot: Snapshot, changes: Changes) -> State:
        """The state that `snapshot` became by `changes`."""
        state = cls.__new__(cls)
        state.snapshot, state.changes = snapshot, changes
        return state

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The whole state as files."""
        if not self.changes:
            return self.snapshot.files
        files = dict(self.snapshot.files)
        if self.changes.pages:
            files[SQLITE_FILE] = self._database()
        for path, text in self.changes.documents.items():
            files[f"{DOCUMENTS_FOLDER}/{path}"] = text.encode()
        return files

    @cached_property
    def digest(self) -> Digest:
        """The logical digest."""
        snapshot = self.snapshot
        documents = dict(snapshot.document_digests)
        documents |= {path: sha256(text) for path, text in self.changes.documents.items()}
        try:
            changed = self.row_changes
        except _SchemaChanged:
            schema, sums = State({SQLITE_FILE: self.files[SQLITE_FILE]})._tables()
        else:
            schema, sums = snapshot.schema, dict(snapshot.sums)
            for name, (removed, added) in changed.items():
                sums[name] = sums[name].change(removed, added)
        tables, others = schema
        return sha256(
            canonical_json(
                {
                    "tables": {table.name: [table.declared, sums[table.name].as_json()] for table in tables},
                    "others": others,
                    "documents": documents,
                }
            )
        )

    def _tables(self) -> tuple:
        return self.snapshot.schema, self.snapshot.sums

    @cached_property
    def row_changes(self) -> Mapping[str, tuple[list[Row], list[Row]]]:
        """Rows that were removed from and added to the snapshot, by table.

        Raises:
            CorruptStateError: the changed pages hold no rows.
        """
        if not self.changes.pages:
            return {}
        try:
            return _changed_rows(self.snapshot, self._page_file, self.connect)
        except (IndexError, ValueError, KeyError, ArithmeticError) as error:
            raise CorruptStateError(f"a changed page cannot be read ({error})") from None

    def connect(self):
        """A private copy of the database in memory; whoever calls closes it."""
        return connect(self._database())

    @cached_property
    def _page_file(self) -> PageFile:
        return PageFile(self.snapshot.database, self.changes.pages, self.changes.count)

    def _database(self) -> bytes:
        base, changes = self.snapshot.database, self.changes
        if not changes.pages:
            return base
        size = self._page_file.page_size
        data = bytearray(base[: changes.count * size].ljust(changes.count * size, b"\0"))
        for number, page in changes.pages.items():
            data[(number - 1) * size : number * size] = page
        return with_log(bytes(data), False)

    def __reduce__(self) -> tuple:
        return State, (dict(self.files),)


_NO_CHANGES = Changes({}, 0, {})


class _SchemaChanged(Exception):
    """Tables were made, altered or dropped: rows of before and after cannot be told apart page by page."""


def read_state(snapshot: Snapshot, pages_log: bytes, documents_log: bytes) -> State:
    """The state of a session over `snapshot`, from its two logs.

    Raises:
        CorruptStateError: the logs are not what SQLite and the guest write.
    """
    changes = change_log.read_changes(pages_log, documents_log, pages.page_size(snapshot.database))
    documents = {
        path: text for path, text in changes.documents.items() if snapshot.documents.get(path) != text.encode()
    }
    return State.after(snapshot, Changes(changes.pages, changes.count, documents))


def logical_digest(files: Mapping[str, bytes]) -> Digest:
    """The digest of a state: the same for the same schema, rows and documents, in whatever order they were written."""
    return State(files).digest


def diff(before: State, after: State, tables: Sequence[Table]) -> StateDiff:
    """What differs from `before` to `after`; `tables` name the keys by which rows are told apart.

    Raises:
        CorruptStateError: a state cannot be read.
    """
    keys = {table.name: table.primary_key for table in tables}
    found = {}
    for name, (schema, removed, added) in _row_differences(before, after).items():
        columns = schema.columns
        key = keys.get(name) or schema.primary_key or columns
        table_diff = _table_diff(columns, key, removed, added)
        if table_diff is not None:
            found[name] = table_diff
    return StateDiff(tables=found, documents=_document_differences(before, after))


def normalised(difference: StateDiff, database: Database) -> dict[str, Json]:
    """`difference` as JSON in which ids made by the session are placeholders ``$1``, ``$2``, ...; {} when it is empty.

    ``{table: {"added": [row], "removed": [row], "changed": [{"key", "before", "after"}]}}``, with only the changed
    columns in before and after; a document is ``"documents/<path>": {"before": sha256, "after": sha256}``.
    Two runs that did the same in another order, or with other ids, give the same value.
    """
    minted = _placeholders(difference, {table.name: table for table in database.tables})
    result: dict[str, Json] = {}
    for name in sorted(difference.tables):
        table = difference.tables[name]
        changed = [
            {
                "key": minted.row(name, change.key),
                "before": minted.row(name, {c: v for c, v in change.before.items() if change.after.get(c) != v}),
                "after": minted.row(name, {c: v for c, v in change.after.items() if change.before.get(c) != v}),
            }
            for change in table.changed
        ]
        result[name] = {
            "added": _in_order(minted.row(name, row) for row in table.added),
            "removed": _in_order(minted.row(name, row) for row in table.removed),
            "changed": _in_order(changed),
        }
    for path in sorted(difference.documents):
        change = difference.documents[path]
        result[f"{DOCUMENTS_FOLDER}/{path}"] = {
            "before": None if change.before is None else sha256(change.before),
            "after": None if change.after is None else sha256(minted.text(change.after)),
        }
    return result


def _changed_rows(snapshot: Snapshot, now: PageFile, open_now: Any) -> dict[str, tuple[list[Row], list[Row]]]:
    """Compare the pages that changed with what they were; tables that only SQLite can read are read by it."""
    before = snapshot.page_file
    touched: dict[str, set[int]] = {}
    for number, page in now._changed.items():
        if number in snapshot.owners and (number > before.count or page != before.page(number)):
            name, counted_for = snapshot.owners[number]
            touched.setdefault(name, set()).add(counted_for)
    schema_tree = before.tree(1)
    if before.records(schema_tree.leaves) != now.records(now.tree(1).leaves):
        raise _SchemaChanged
    result, by_sql = {}, []
    for table in snapshot.schema[0]:
        if not table.plain:
            by_sql.append(table)
        elif table.name in touched:
            compared = _compare(snapshot, now, table, touched[table.name])
            if compared is None:
                by_sql.append(table)
            else:
                result[table.name] = compared
    if by_sql:
        with closing(snapshot.connect()) as old, closing(open_now()) as new:
            for table in by_sql:
                result[table.name] = _subtract(rows(old, table), rows(new, table))
    return {name: pair for name, pair in result.items() if pair[0] or pair[1]}


def _compare(
    snapshot: Snapshot, now: PageFile, table: TableSchema, touched: set[int]
) -> tuple[list[Row], list[Row]] | None:
    tree = snapshot.trees[table.name]
    new_tree = now.tree(table.root) if touched & tree.inner or table.root in touched else tree
    old = snapshot.page_file.records((touched & tree.leaves) | (tree.leaves - new_tree.leaves))
    new = now.records((touched & new_tree.leaves) | (new_tree.leaves - tree.leaves))
    removed = [table.row(rowid, record) for rowid, record in old.items() if new.get(rowid) != record]
    added = [table.row(rowid, record) for rowid, record in new.items() if old.get(rowid) != record]
    if None in removed or None in added:
        return None
    return _subtract(removed, added)


def _subtract(old: Iterable[Row], new: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    before, after = Counter(map(_typed, old)), Counter(map(_typed, new))
    removed, added = before - after, after - before
    return [row for row, _ in removed.elements()], [row for row, _ in added.elements()]


def _typed(row: Row) -> tuple[Row, tuple[type, ...]]:
    # 1 and 1.0 are equal to Python and different to SQLite.
    return row, tuple(map(type, row))


def _row_differences(before: State, after: State) -> dict[str, tuple[TableSchema, list[Row], list[Row]]]:
    if before.snapshot is after.snapshot:
        try:
            old, new = before.row_changes, after.row_changes
        except _SchemaChanged:
            pass
        else:
            schema = {table.name: table for table in after.snapshot.schema[0]}
            result = {}
            for name in sorted({*old, *new}):
                (undone, redone), (removed, added) = old.get(name, ([], [])), new.get(name, ([], []))
                result[name] = (schema[name], *_subtract([*removed, *redone], [*added, *undone]))
            return result
    with closing(before.connect()) as old_db, closing(after.connect()) as new_db:
        old_tables = {table.name: table for table in snapshot_of({SQLITE_FILE: before._database()}).schema[0]}
        new_tables = {table.name: table for table in snapshot_of({SQLITE_FILE: after._database()}).schema[0]}
        result = {}
        for name in sorted({*old_tables, *new_tables}):
            old_rows = rows(old_db, old_tables[name]) if name in old_tables else []
            new_rows = rows(new_db, new_tables[name]) if name in new_tables else []
            schema = new_tables.get(name) or old_tables[name]
            result[name] = (schema, *_subtract(old_rows, new_rows))
        return result


def _table_diff(columns: Sequence[str], key: Sequence[str], removed: list[Row], added: list[Row]) -> TableDiff | None:
    if not removed and not added:
        return None
    old = [_json_row(columns, row) for row in removed]
    new = [_json_row(columns, row) for row in added]
    by_key = {canonical_json([row.get(column) for column in key]): row for row in old}
    changed, only_new = [], []
    for row in new:
        identity = canonical_json([row.get(column) for column in key])
        match = by_key.pop(identity, None)
        if match is None:
            only_new.append(row)
        else:
            changed.append(RowChange(key={column: row.get(column) for column in key}, before=match, after=row))
    matched = {id(change.before) for change in changed}
    return TableDiff(
        added=tuple(_in_order(only_new)),
        removed=tuple(_in_order(row for row in old if id(row) not in matched)),
        changed=tuple(sorted(changed, key=lambda change: canonical_json(change.after))),
    )


def _json_row(columns: Sequence[str], row: Row) -> JsonRow:
    return {
        column: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for column, value in zip(columns, row, strict=False)
    }


def _in_order(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=canonical_json)


def _document_differences(before: State, after: State) -> dict[str, DocumentChange]:
    if before.snapshot is after.snapshot:
        names = {*before.changes.documents, *after.changes.documents}
    else:
        names = {*_document_names(before), *_document_names(after)}
    result = {}
    for path in sorted(names):
        old, new = _document(before, path), _document(after, path)
        if old != new:
            result[path] = DocumentChange(before=old, after=new)
    return result


def _document_names(state: State) -> set[str]:
    return {*state.snapshot.documents, *state.changes.documents}


def _document(state: State, path: str) -> str | None:
    if path in state.changes.documents:
        return state.changes.documents[path]
    content = state.snapshot.documents.get(path)
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return base64.b64encode(content).decode()


class _Placeholders:
    def __init__(self, names: Mapping[tuple[str, Json], str], tables: Mapping[str, Table]) -> None:
        self._names = names
        self._texts = {value: name for (_, value), name in names.items() if isinstance(value, str)}
        self._origin = {
            table.name: {
                **{key.column: key.parent for key in table.foreign_keys},
                **({table.primary_key[0]: table.name} if len(table.primary_key) == 1 else {}),
            }
            for table in tables.values()
        }

    def row(self, table: str, row: JsonRow) -> dict[str, Json]:
        origin = self._origin.get(table, {})
        return {column: self._value(origin.get(column), value) for column, value in row.items()}

    def text(self, text: str) -> str:
        for value in sorted(self._texts, key=len, reverse=True):
            text = text.replace(value, self._texts[value])
        return text

    def _value(self, origin: str | None, value: Json) -> Json:
        if isinstance(value, str):
            return self._texts.get(value, value)
        return self._names.get((origin, value), value) if origin is not None else value


def _placeholders(difference: StateDiff, tables: Mapping[str, Table]) -> _Placeholders:
    """Number the rows that the session added to workflow tables, in an order that does not depend on their ids."""
    minted = []
    for name in sorted(difference.tables):
        table = tables.get(name)
        if table is not None and table.workflow is not None and len(table.primary_key) == 1:
            minted += [(name, row[table.primary_key[0]], row) for row in difference.tables[name].added]
    blank = _Placeholders({(name, value): "$" for name, value, _ in minted}, tables)
    minted.sort(key=lambda entry: (entry[0], canonical_json(blank.row(entry[0], entry[2]))))
    return _Placeholders({(name, value): f"${number}" for number, (name, value, _) in enumerate(minted, 1)}, tables)
