"""What evaluation says is weak, and what to do about it (method.md 7)."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, json_text, text

TABLE = TableSpec(
    name="diagnoses",
    shape="artifact",
    kind="diagnosis",
    meaning="What evaluation says is weak, and what to do about it (method.md 7).",
    key=("version_id",),
    columns=(
        integer("round", "round"),
        text("policy_version", "policy diagnosed"),
        json_text("weak", "ranked weak environments W with evidence"),
        json_text("guidelines", "environment key to guideline"),
        json_text("errors", "failure labels by environment and by category: counts and rates with 95 % intervals"),
        text("summary", "text for people"),
    ),
)
