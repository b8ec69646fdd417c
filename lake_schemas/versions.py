"""Every version of every artifact, whatever its kind: the nodes of the lineage graph."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, text

TABLE = TableSpec(
    name="versions",
    shape="derived",
    meaning="Every version of every artifact, whatever its kind: the nodes of the lineage graph.",
    key=("version_id",),
    columns=(
        text("version_id", "exact version"),
        text("artifact_id", "what this is a version of"),
        text("kind", "artifact kind"),
        integer("rev", "1, 2, 3 ... in commit order"),
        text("content_hash", "sha256 of kind, payload and blob root"),
        text("derivation_hash", "how it was made"),
        text("blob_root", "root of its blob tree"),
        text("batch", "batch that created it"),
    ),
)
