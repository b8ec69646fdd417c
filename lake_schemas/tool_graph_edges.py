"""Edges of the tool graphs: strong 3, weak 2, independent 1."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, json_text, text

TABLE = TableSpec(
    name="tool_graph_edges",
    shape="fact",
    meaning="Edges of the tool graphs: strong 3, weak 2, independent 1.",
    key=("environment", "from_tool", "to_tool"),
    columns=(
        text("environment", "environment version"),
        text("from_tool", "tool name"),
        text("to_tool", "tool name"),
        integer("weight", "3, 2 or 1"),
        json_text("evidence", "typed evidence of the dependency"),
    ),
)
