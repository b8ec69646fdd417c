"""Candidate and accepted tools."""

from __future__ import annotations

from lake_schemas.base import TableSpec, boolean, integer, json_text, real, text

TABLE = TableSpec(
    name="tools",
    shape="artifact",
    kind="tool",
    meaning="Candidate and accepted tools.",
    key=("version_id",),
    columns=(
        text("tool_id", "environment key / name"),
        text("name", "name an agent calls"),
        text("description", "what an agent reads"),
        json_text("input_schema", "JSON Schema of the arguments"),
        json_text("output_schema", "JSON Schema of the result"),
        boolean("writes", "changes the state"),
        text("source", "Python source"),
        text("pattern", "what kind of tool it is"),
        json_text("tables", "tables it touches"),
        json_text("inputs", "meaning of each parameter"),
        json_text("outputs", "meaning of each result field"),
        text("workflow", "overlay it belongs to"),
        json_text("documents", "documents it touches"),
        boolean("accepted", "passed the tool gate", observed=True),
        real("accuracy", "Acc(f; C_f), share of passed tests", observed=True),
        integer("tests", "tests run", observed=True),
    ),
)
