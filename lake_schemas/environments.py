"""Accepted environments (D, F), pinned by the hashes of their parts."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, json_text, text

TABLE = TableSpec(
    name="environments",
    shape="artifact",
    kind="environment",
    meaning="Accepted environments (D, F), pinned by the hashes of their parts.",
    key=("version_id",),
    columns=(
        text("environment_id", "environment key"),
        text("title", "title"),
        text("description", "description"),
        text("theme", "theme version"),
        text("database_version", "database version"),
        json_text("tool_versions", "tool versions"),
        text("runtime", "how tools are loaded"),
        text("state_format", "how state is laid"),
        text("category", "first-level category", observed=True),
        integer("round", "the arena round that it was enriched for; 0 for what was built first", observed=True),
        integer("tables", "tables", observed=True),
        integer("tools", "tools", observed=True),
        integer("tests", "passed tests of its tools", observed=True),
        integer("writing_tools", "tools that write", observed=True),
    ),
)
