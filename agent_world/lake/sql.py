"""SQL over a lake with DuckDB: every table, `events` and every view by name; nothing but the lake can be reached."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from agent_world.lake.errors import QueryError
from lake_schemas import TABLES
from lake_schemas.views import VIEWS

if TYPE_CHECKING:
    from agent_world.lake.view import View

_CATALOG = re.compile(r"\b(information_schema|duckdb_\w+|show|query|query_table|sqlite_master|pragma_\w+)\b")

_PREPARE = """
    SET TimeZone = 'UTC';
    CREATE MACRO get_json_object(json, path) AS json_extract_string(json, path);
    CREATE MACRO json_object_keys(json) AS json_keys(json);
    CREATE MACRO json_items(json) AS json_extract_string(json, '$[*]');
    CREATE MACRO array_size(items) AS len(items);
    CREATE MACRO explode(items) AS unnest(items);
"""
"""The lake's time zone, whatever the machine's; Spark's functions by its names, so that a view has one text."""


class Named(NamedTuple):
    """What a query needs of a lake: tables with `events`, and views; those that views rest on are among the tables."""

    tables: Sequence[str]
    views: Sequence[str]


def run(query: str, view: View) -> pa.Table:
    """The answer to `query` over the tables and views of `view`.

    Raises:
        QueryError: the engine refused it.
    """
    import duckdb

    needed = named(query)
    with duckdb.connect(":memory:") as engine:
        engine.execute(_PREPARE)
        for name in needed.tables:
            engine.register(name, view.table(name))
        for name in needed.views:
            engine.execute(f"CREATE VIEW {name} AS {VIEWS[name].duckdb_sql}")
        engine.execute("SET enable_external_access = false; SET lock_configuration = true")
        try:
            answer = engine.sql(query)
            if answer is None:
                raise QueryError("it gives no rows; a lake is changed by batches, not by SQL")
            return answer.to_arrow_table()
        except (duckdb.Error, pa.ArrowInvalid) as error:
            raise QueryError(str(error)) from error


def named(query: str) -> Named:
    """What the text names, so that the rest need not be folded; everything when it looks at the catalog."""
    text = query.lower()
    words = set(re.findall(r"\w+", text))
    tables = [*TABLES, "events"]
    if _CATALOG.search(text):
        return Named(tables, list(VIEWS))
    views = [name for name in VIEWS if name in words]
    return Named([name for name in tables if name in words or any(VIEWS[view].mentions(name) for view in views)], views)
