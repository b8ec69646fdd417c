"""How a view of the lake is declared: one `ViewSpec` a module gives its query, its columns and what each means.

A query is written once, for DuckDB and for Spark SQL: in what both have, and three functions that DuckDB is taught
(agent_world/lake/sql.py). `get_json_object(json, path)` and `explode(array)` are Spark's; `json_items(column)` is the
array of texts in a column that holds a JSON array, which Spark spells as a `from_json`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lake_schemas.base import TIMESTAMP, ColumnSpec, spark_type

_ITEMS = re.compile(r"\bjson_items\(([\w.]+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSpec:
    """One view: `query` names lake tables only, no other view, and gives `columns` by name."""

    name: str
    meaning: str
    columns: tuple[ColumnSpec, ...]
    query: str

    @property
    def sql(self) -> str:
        """The query with each column in its declared type, the same in both engines but for `json_items`."""
        columns = ", ".join(
            f"`{c.name}`" if c.type == TIMESTAMP else f"CAST(`{c.name}` AS {spark_type(c.type)}) AS `{c.name}`"
            for c in self.columns
        )
        return f"SELECT {columns} FROM ({self.query}) AS q"

    @property
    def duckdb_sql(self) -> str:
        """The query as DuckDB takes it."""
        return self.sql.replace("`", '"')

    @property
    def spark_sql(self) -> str:
        """The query as Spark takes it."""
        return _ITEMS.sub(r"from_json(\1, 'array<string>')", self.sql)

    def mentions(self, table: str) -> bool:
        """Whether the query reads `table`."""
        return re.search(rf"\b(FROM|JOIN) {table}\b", self.query) is not None
