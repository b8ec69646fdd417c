"""SQL over a lake with DuckDB: every table and `events` is a view; nothing but the lake can be reached."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from agent_world.lake.errors import QueryError
from lake_schemas import TABLES

if TYPE_CHECKING:
    from agent_world.lake.view import View

_CATALOG = re.compile(r"\b(information_schema|duckdb_\w+|show|query|query_table|sqlite_master|pragma_\w+)\b")


def run(query: str, view: View) -> pa.Table:
    """The answer to `query` over the tables of `view`.

    Raises:
        QueryError: the engine refused it.
    """
    import duckdb

    with duckdb.connect(":memory:") as engine:
        for name in _named(query):
            engine.register(name, view.table(name))
        engine.execute("SET enable_external_access = false; SET lock_configuration = true")
        try:
            answer = engine.sql(query)
            if answer is None:
                raise QueryError("it gives no rows; a lake is changed by batches, not by SQL")
            return answer.to_arrow_table()
        except (duckdb.Error, pa.ArrowInvalid) as error:
            raise QueryError(str(error)) from error


def _named(query: str) -> list[str]:
    """The tables that the text names, so that the others need not be folded; all when it looks at the catalog."""
    text = query.lower()
    words = set(re.findall(r"\w+", text))
    tables = [*TABLES, "events"]
    return tables if _CATALOG.search(text) else [name for name in tables if name in words]
