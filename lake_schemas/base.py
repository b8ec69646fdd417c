"""How a lake table is declared: one `TableSpec` a module gives its Arrow schema, keys and the meaning of each column.

An artifact table holds one row a version: the standard columns below, then columns taken by name from the payload of
`created` events, or, where `observed`, from later observations about that version. A fact table holds, of each key, the
row of the newest `recorded` event, and has no versions. Derived tables are folded from the envelope of events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSpec:
    """One column.

    `json` columns hold canonical JSON text; `observed` ones are filled by observations; `volatile` ones say when, where
    or in which run something happened, and are left out of logical digests. `since` is the version of the events that
    brought the column: a digest of an older event leaves it out.
    """

    name: str
    type: pa.DataType
    meaning: str
    json: bool = False
    observed: bool = False
    volatile: bool = False
    since: int = 1


def text(name: str, meaning: str, *, observed: bool = False, volatile: bool = False) -> ColumnSpec:
    """A text column."""
    return ColumnSpec(name=name, type=pa.string(), meaning=meaning, observed=observed, volatile=volatile)


def integer(name: str, meaning: str, *, observed: bool = False, volatile: bool = False) -> ColumnSpec:
    """A 64-bit integer column."""
    return ColumnSpec(name=name, type=pa.int64(), meaning=meaning, observed=observed, volatile=volatile)


def real(name: str, meaning: str, *, observed: bool = False, volatile: bool = False) -> ColumnSpec:
    """A 64-bit float column."""
    return ColumnSpec(name=name, type=pa.float64(), meaning=meaning, observed=observed, volatile=volatile)


def boolean(name: str, meaning: str, *, observed: bool = False) -> ColumnSpec:
    """A yes/no column."""
    return ColumnSpec(name=name, type=pa.bool_(), meaning=meaning, observed=observed)


def json_text(name: str, meaning: str, *, observed: bool = False) -> ColumnSpec:
    """A column of canonical JSON, decoded when rows are read."""
    return ColumnSpec(name=name, type=pa.string(), meaning=meaning, json=True, observed=observed)


def moment(name: str, meaning: str) -> ColumnSpec:
    """A point in time, in UTC; volatile."""
    return ColumnSpec(name=name, type=TIMESTAMP, meaning=meaning, volatile=True)


ARTIFACT_COLUMNS: tuple[ColumnSpec, ...] = (
    text("version_id", "exact version: artifact_id@content_hash[:32]"),
    text("artifact_id", "what this is a version of"),
    integer("rev", "1, 2, 3 ... in commit order, for people; derived at replay"),
    text("state", "created, superseded or retired"),
    text("content_hash", "sha256 of kind, payload and blob root"),
    text("derivation_hash", "sha256 of code version, parameters and parents: the cache key"),
    text("blob_root", "root of the blob tree, when the artifact has files"),
    text("run_id", "the run that created it", volatile=True),
    text("partition", "logical partition of the batch that created it"),
    moment("created_at", "when the event was committed"),
)

FACT_COLUMNS: tuple[ColumnSpec, ...] = (
    text("event_id", "the event that recorded this row"),
    text("run_id", "the run that recorded it", volatile=True),
    moment("recorded_at", "when the event was committed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """One table of the lake."""

    name: str
    shape: Literal["artifact", "fact", "derived", "log"]
    meaning: str
    columns: tuple[ColumnSpec, ...]
    key: tuple[str, ...]
    kind: str | None = None

    @property
    def all_columns(self) -> tuple[ColumnSpec, ...]:
        """The standard columns of this shape, then its own."""
        standard = {"artifact": ARTIFACT_COLUMNS, "fact": FACT_COLUMNS, "derived": (), "log": ()}[self.shape]
        return (*standard, *self.columns)

    def column(self, name: str) -> ColumnSpec:
        """The column called `name`, standard columns included.

        Raises:
            KeyError: there is none.
        """
        for column in self.all_columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name}.{name}")

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema, column meanings in the field metadata."""
        return pa.schema(
            [pa.field(c.name, c.type, metadata={"meaning": c.meaning}) for c in self.all_columns],
            metadata={"meaning": self.meaning},
        )

    def spark_ddl(self) -> str:
        """The column list of a Spark ``CREATE TABLE`` with the same names, types and comments."""
        return ", ".join(
            f"`{c.name}` {spark_type(c.type)} COMMENT '{c.meaning.replace(chr(39), chr(39) * 2)}'"
            for c in self.all_columns
        )


_SPARK_TYPES = {
    pa.string(): "STRING",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    TIMESTAMP: "TIMESTAMP",
}


def spark_type(kind: pa.DataType) -> str:
    """What Spark SQL calls the type of a column."""
    if pa.types.is_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {spark_type(field.type)}' for field in kind)}>"
    return _SPARK_TYPES[kind]
