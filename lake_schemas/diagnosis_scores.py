"""How right the diagnosis is on a policy whose fault was planted (method.md 9)."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, json_text, real, text

TABLE = TableSpec(
    name="diagnosis_scores",
    shape="artifact",
    kind="diagnosis_score",
    meaning="How right the diagnosis is on a policy whose fault was planted (method.md 9).",
    key=("version_id",),
    columns=(
        text("policy", "the planted fault, or healthy"),
        integer("environments", "environments played"),
        integer("episodes", "episodes diagnosed"),
        json_text("planted", "environment key to planted fault"),
        json_text("found", "environment key to the label of its guideline"),
        real("environment_precision", "share of the environments found that were struck"),
        real("environment_recall", "share of the struck environments that were found"),
        real("label_precision", "share of the environments found that were struck by what their label says"),
        real("label_recall", "share of the struck environments that were found with the right label"),
    ),
)
