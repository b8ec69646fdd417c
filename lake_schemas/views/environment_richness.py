"""Environments, and how rich each version of their database is."""

from __future__ import annotations

from lake_schemas.base import ColumnSpec, boolean, integer, real, text
from lake_schemas.views.base import ViewSpec

_RICHNESS: tuple[ColumnSpec, ...] = (
    integer("tables", "tables of data; tables of a workflow are not counted here"),
    integer("columns", "columns of these tables"),
    integer("rows", "rows of these tables"),
    integer("links", "foreign keys between these tables"),
    integer("documents", "documents beside the tables"),
    integer("formats", "formats of these documents"),
    integer("sources", "real sources that the data comes from"),
    real("filled", "share of cells that hold a value"),
)

_VECTOR = ", ".join(f"CAST(get_json_object(d.richness, '$.{c.name}') AS DOUBLE) AS `{c.name}`" for c in _RICHNESS)

VIEW = ViewSpec(
    name="environment_richness",
    meaning="One row a version of a database, and an environment version that pins it: how mining, complexification "
    "and enrichment made it richer.",
    columns=(
        text("environment", "environment key"),
        text("title", "title of the environment, else of its theme"),
        text("theme_source", "M1 (MCP server), M2 (tool documentation) or M3 (PRD)"),
        text("data", "data package that search decided on"),
        text("category", "first-level category of the current environment version; null when none was accepted"),
        integer("rev", "1, 2, 3 ... of the database, in commit order"),
        integer("round", "complexification round, 0 for mining"),
        boolean("workflow", "whether tables were added that writing tools work on"),
        *_RICHNESS,
        integer("tools", "tools of the environment version"),
        integer("writing_tools", "those of them that write"),
        integer("tests", "passed tests of its tools"),
        text("database_version", "database version"),
        text("environment_version", "environment version that pins it; null for a step on the way"),
        text("state", "created, superseded or retired: of the environment version, else of the database version"),
    ),
    query=f"""
        WITH current AS (
            SELECT environment_id, max(category) AS category FROM environments WHERE state = 'created'
            GROUP BY environment_id
        )
        SELECT
            d.database_id AS environment, coalesce(e.title, t.title) AS title, t.source AS theme_source,
            t.matched_source AS data, c.category, d.rev, d.round, contains(d.tables, '"workflow":"') AS workflow,
            {_VECTOR}, e.tools, e.writing_tools, e.tests, d.version_id AS database_version,
            e.version_id AS environment_version, coalesce(e.state, d.state) AS state
        FROM databases d
        LEFT JOIN environments e ON e.database_version = d.version_id
        LEFT JOIN themes t ON t.version_id = d.theme
        LEFT JOIN current c ON c.environment_id = d.database_id
    """,
)
