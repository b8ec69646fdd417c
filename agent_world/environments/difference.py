"""What differs between two states, and that difference in the form that two runs of one plan share."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_world.environments.comparison import RowChanges
from agent_world.environments.database import Row
from agent_world.environments.model import DOCUMENTS_FOLDER, Database, Json, Table
from agent_world.identity import canonical_json, sha256

JsonRow = Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A row whose key stayed and whose other values did not: both whole rows."""

    key: JsonRow
    before: JsonRow
    after: JsonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDiff:
    """What happened to one table, each part in the order of the rows' canonical JSON. Bytes are base64."""

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
    """What differs between two states; tables and documents that do not are absent. False when nothing does."""

    tables: Mapping[str, TableDiff] = field(default_factory=dict)
    documents: Mapping[str, DocumentChange] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.tables or self.documents)


def table_diff(columns: Sequence[str], key: Sequence[str], changes: RowChanges) -> TableDiff:
    """`changes` of a table with these columns: a gone and a come row that alone have one `key` are one changed row."""
    gone, come = ([_json_row(columns, row) for row in rows] for rows in (changes.removed, changes.added))
    return keyed_diff(*([({column: row[column] for column in key}, row) for row in rows] for rows in (gone, come)))


def keyed_diff(removed: Sequence[tuple[JsonRow, JsonRow]], added: Sequence[tuple[JsonRow, JsonRow]]) -> TableDiff:
    """What happened to rows that each come with their key."""
    gone, come = ([row for _, row in rows] for rows in (removed, added))
    gone_keys, come_keys = ([canonical_json(key) for key, _ in rows] for rows in (removed, added))
    gone_count, come_count = Counter(gone_keys), Counter(come_keys)
    before = {text: row for text, row in zip(gone_keys, gone, strict=True) if gone_count[text] == come_count[text] == 1}
    changed = [
        RowChange(key=key, before=before[text], after=row)
        for text, (key, row) in zip(come_keys, added, strict=True)
        if text in before
    ]
    return TableDiff(
        added=tuple(_in_order(row for text, row in zip(come_keys, come, strict=True) if text not in before)),
        removed=tuple(_in_order(row for text, row in zip(gone_keys, gone, strict=True) if text not in before)),
        changed=tuple(sorted(changed, key=lambda change: canonical_json(change.key))),
    )


def normalised(difference: StateDiff, database: Database) -> dict[str, Json]:
    """`difference` as JSON in which ids that the session made are ``$1``, ``$2``, ...; {} when nothing differs.

    ``{table: {"added": [row], "removed": [row], "changed": [{"key", "before", "after"}]}}``, with only the changed
    columns in before and after; a document is ``"documents/<path>": {"before": sha256, "after": sha256}``. Ids that the
    session made are the keys of rows added to workflow tables. Runs that did the same in another order, or with other
    ids, give the same value.
    """
    names = _Names.of(difference, database.tables)
    result: dict[str, Json] = {}
    for table, change in difference.tables.items():
        result[table] = {
            "added": _in_order(names.row(table, row) for row in change.added),
            "removed": _in_order(names.row(table, row) for row in change.removed),
            "changed": _in_order(_changed_columns(names, table, row) for row in change.changed),
        }
    for path, document in difference.documents.items():
        result[f"{DOCUMENTS_FOLDER}/{path}"] = {
            "before": None if document.before is None else sha256(document.before),
            "after": None if document.after is None else sha256(names.text(document.after)),
        }
    return dict(sorted(result.items()))


class _Names:
    """The placeholders of ids that a session made, by table and id."""

    def __init__(self, names: Mapping[tuple[str, Json], str], tables: Mapping[str, Table]) -> None:
        self._names = names
        self._texts = {value: name for (_, value), name in names.items() if isinstance(value, str)}
        self._tables = tables

    @classmethod
    def of(cls, difference: StateDiff, tables: Sequence[Table]) -> _Names:
        """Number the new rows of workflow tables in an order that does not depend on their ids."""
        by_name = {table.name: table for table in tables}
        new = [
            (table.name, row[table.primary_key[0]], row)
            for table in tables
            if table.workflow is not None and len(table.primary_key) == 1
            for row in difference.tables.get(table.name, TableDiff()).added
            if table.primary_key[0] in row
        ]
        blank = cls({(table, value): "$" for table, value, _ in new}, by_name)
        new.sort(key=lambda entry: (entry[0], canonical_json(blank.row(entry[0], entry[2]))))
        return cls({(table, value): f"${number}" for number, (table, value, _) in enumerate(new, 1)}, by_name)

    def row(self, table: str, row: JsonRow) -> dict[str, Json]:
        """`row` with placeholders. A number is an id only in a key or a reference, a text wherever it stands alone."""
        return {column: self._value(table, column, value) for column, value in row.items()}

    def text(self, text: str) -> str:
        """`text` with every id in it replaced."""
        for value in sorted(self._texts, key=len, reverse=True):
            text = text.replace(value, self._texts[value])
        return text

    def _value(self, table: str, column: str, value: Json) -> Json:
        if isinstance(value, str):
            return self._texts.get(value, value)
        if isinstance(value, Mapping):
            return {name: self._value(table, name, item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._value(table, column, item) for item in value]
        schema = self._tables.get(table)
        if schema is None or not self._names:
            return value
        if (column,) == schema.primary_key:
            return self._names.get((table, value), value)
        parents = (key.parent for key in schema.foreign_keys if key.column == column)
        return next((self._names[parent, value] for parent in parents if (parent, value) in self._names), value)


def _changed_columns(names: _Names, table: str, change: RowChange) -> dict[str, Json]:
    return {
        "key": names.row(table, change.key),
        "before": names.row(table, _unlike(change.before, change.after)),
        "after": names.row(table, _unlike(change.after, change.before)),
    }


def _unlike(row: JsonRow, other: JsonRow) -> JsonRow:
    """The columns of `row` that `other` does not have, or not so."""
    return {
        column: value
        for column, value in row.items()
        if column not in other or canonical_json(value) != canonical_json(other[column])
    }


def _json_row(columns: Sequence[str], row: Row) -> JsonRow:
    return {
        column: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for column, value in zip(columns, row, strict=True)
    }


def _in_order(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=canonical_json)
