"""Lineage between exact versions."""

from __future__ import annotations

from lake_schemas.base import TableSpec, text

TABLE = TableSpec(
    name="edges",
    shape="derived",
    meaning="Lineage between exact versions.",
    key=("child", "parent", "role"),
    columns=(
        text("child", "child version"),
        text("parent", "parent version"),
        text("role", "what the parent was to the child"),
        text("run_id", "run", volatile=True),
    ),
)
