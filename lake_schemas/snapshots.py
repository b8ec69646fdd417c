"""Snapshots taken of this lake."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, text

TABLE = TableSpec(
    name="snapshots",
    shape="fact",
    meaning="Snapshots taken of this lake.",
    key=("snapshot_id",),
    columns=(
        text("snapshot_id", "sha256 of the manifest"),
        integer("events_version", "pinned version of events"),
        text("manifest_blob", "blob of the manifest"),
    ),
)
