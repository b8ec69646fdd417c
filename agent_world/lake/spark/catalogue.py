"""The tables and views of a lake in Spark: exactly what readers see, whatever is stored.

Of a table whose projection is stored as it stands, Spark gets the data files themselves, on disk or on S3; so it does
of `events`. Of one that readers carry on in memory, or of an older state, it gets a copy in Parquet. Either way the
files are fixed when the session begins: the tables hang together and do not move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from agent_world.lake.lake import Lake
from agent_world.lake.log import FOLDER as EVENTS_FOLDER
from agent_world.lake.projections import FOLDED_THROUGH
from lake_schemas import EVENTS, TABLES, TableSpec
from lake_schemas.views import VIEWS, ViewSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from agent_world.lake.view import View

_TRIES = 3
_PATTERN = set("*?[]{},\\' ")
"""Characters that mean something in a path pattern, or end one: files with them are copied."""


class Source(NamedTuple):
    """A table's rows as Parquet files; `path` is a pattern that matches them all and no other."""

    spec: TableSpec
    path: str


def sources(lake: Lake, at: View | None, tables: Sequence[str], folder: Path) -> list[Source]:
    """Where Spark finds each of `tables`, as the lake stands or stood `at`; what must be copied goes below `folder`."""
    if at is None:
        for attempt in range(_TRIES):
            version = lake.events_version()
            stored = dict(lake.projections.tables())
            found = [_now(lake, name, version, stored, folder / str(attempt)) for name in tables]
            if lake.events_version() == version:
                return found
        at = lake.at(lake.events_version())  # somebody writes faster than we read: hold on to one version
    return [_copied(at, name, folder / "at") for name in tables]


def register(spark: SparkSession, found: Sequence[Source], views: Sequence[str], *, lasting: bool = False) -> None:
    """Make tables and views known by name: to this session, or with `lasting` to every session of its application."""
    for spec, path in found:
        options = f"USING parquet OPTIONS (path '{path}')"
        if lasting:
            spark.sql(f"CREATE TABLE {spec.name} ({spec.spark_ddl()}) {options} COMMENT {_quoted(spec.meaning)}")
        else:
            spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {spec.name} ({spec.spark_ddl()}) {options}")
    for name in views:
        spark.sql(_definition(VIEWS[name], "VIEW" if lasting else "TEMPORARY VIEW"))


def _definition(view: ViewSpec, what: str) -> str:
    columns = ", ".join(f"`{c.name}` COMMENT {_quoted(c.meaning)}" for c in view.columns)
    return f"CREATE OR REPLACE {what} {view.name} ({columns}) COMMENT {_quoted(view.meaning)} AS {view.spark_sql}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _now(lake: Lake, name: str, version: int, stored: Mapping[str, DeltaTable], folder: Path) -> Source:
    key, table = _stored(lake, name, version, stored)
    if table is not None:
        place = lake.storage.table_uri(key)
        files = [unquote(path) for path in pa.table(table.get_add_actions()).column("path").to_pylist()]
        if files and not any(_PATTERN & set(text) for text in (place, *files)):
            return Source(_spec(name), f"{place}/{{{','.join(files)}}}")
    return _copied(lake, name, folder)


def _stored(
    lake: Lake, name: str, version: int, stored: Mapping[str, DeltaTable]
) -> tuple[str, DeltaTable | None]:  # fmt: skip
    """Where a table is stored as readers see it; without the table when it is not."""
    if name == "events":
        return EVENTS_FOLDER, lake.log.handle(version)
    entry = lake.tables.entry(name)
    for key, table in stored.items():
        if key.endswith(f"/{name}") and entry.settled:
            return key, table if table.transaction_version(FOLDED_THROUGH) == entry.stored_through else None
    return "", None


def _copied(view: View, name: str, folder: Path) -> Source:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.parquet"
    pq.write_table(view.table(name), file, compression="zstd", compression_level=1)
    return Source(_spec(name), str(file))


def _spec(name: str) -> TableSpec:
    return EVENTS if name == "events" else TABLES[name]
