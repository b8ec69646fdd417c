"""Two-level taxonomy of themes (method.md 4)."""

from __future__ import annotations

from lake_schemas.base import TableSpec, json_text, real

TABLE = TableSpec(
    name="taxonomy",
    shape="artifact",
    kind="taxonomy",
    meaning="Two-level taxonomy of themes (method.md 4).",
    key=("version_id",),
    columns=(
        json_text("clusters", "second level: id, label, members, representatives"),
        json_text("categories", "first level: id, label, clusters"),
        json_text("assignment", "environment key to category"),
        real("agreement", "mean pairwise agreement of the annotator passes"),
        json_text("passes", "what each annotator pass used and gave"),
    ),
)
