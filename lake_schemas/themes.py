"""Seed topics with their source documents (method.md 1)."""

from __future__ import annotations

from lake_schemas.base import TableSpec, json_text, real, text

TABLE = TableSpec(
    name="themes",
    shape="artifact",
    kind="theme",
    meaning="Seed topics with their source documents (method.md 1).",
    key=("version_id",),
    columns=(
        text("source", "M1 (MCP server), M2 (tool documentation) or M3 (PRD)"),
        text("origin", "connector and item the theme was read from"),
        text("title", "short title"),
        text("description", "what it is about, in plain words"),
        json_text("tools", "tool definitions as found: name, description, input_schema"),
        json_text("nouns", "entity words"),
        json_text("verbs", "non-CRUD action words"),
        text("licence", "licence of the source document"),
        text("sha256", "sha256 of the source document"),
        text("verdict", "matched or rejected by mining", observed=True),
        text("matched_source", "data package that search decided on", observed=True),
        real("match_score", "score of the data decided on, else of the best that search proposed", observed=True),
    ),
)
