"""Snapshots of D; rev 1 is what mining found, later ones complexification rounds and workflow tables."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, json_text, text

TABLE = TableSpec(
    name="databases",
    shape="artifact",
    kind="database",
    meaning="Snapshots of D; rev 1 is what mining found, later ones complexification rounds and workflow tables.",
    key=("version_id",),
    columns=(
        text("database_id", "environment key"),
        text("theme", "theme version"),
        integer("round", "complexification round, 0 for mining"),
        text("digest", "logical digest"),
        json_text("tables", "tables with keys, columns, roles, sources, measured integrity"),
        json_text("documents", "documents of D"),
        json_text("richness", "richness vector"),
        text("retrieved_at", "when the first source it brought in was read, in UTC", observed=True, volatile=True),
    ),
)
