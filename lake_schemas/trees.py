"""Directories of blobs."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, text

TABLE = TableSpec(
    name="trees",
    shape="derived",
    meaning="Directories of blobs.",
    key=("root", "path"),
    columns=(
        text("root", "sha256 of the canonical listing"),
        text("path", "relative path"),
        text("sha256", "blob"),
        integer("size", "bytes"),
    ),
)
