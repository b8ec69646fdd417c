"""Items that could not be used, with their raw bytes."""

from __future__ import annotations

from lake_schemas.base import TableSpec, text

TABLE = TableSpec(
    name="quarantine",
    shape="fact",
    meaning="Items that could not be used, with their raw bytes.",
    key=("stage", "item", "reason", "detail", "raw_blob"),
    columns=(
        text("stage", "stage"),
        text("item", "file, row, tool or page"),
        text("reason", "typed reason"),
        text("detail", "where and why"),
        text("raw_blob", "sha256 of the raw bytes"),
    ),
)
