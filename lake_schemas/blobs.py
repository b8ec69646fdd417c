"""Content-addressed objects."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, text

TABLE = TableSpec(
    name="blobs",
    shape="derived",
    meaning="Content-addressed objects.",
    key=("sha256",),
    columns=(
        text("sha256", "sha256 of the raw bytes"),
        text("pack", "pack or object that holds it", volatile=True),
        integer("offset", "offset in the pack", volatile=True),
        integer("stored_bytes", "stored length", volatile=True),
        integer("raw_bytes", "raw length"),
        text("codec", "zstd or raw", volatile=True),
    ),
)
