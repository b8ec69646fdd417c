"""Episodes: solver runs, demonstrations, arena attempts, samples of evaluation and training."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, json_text, text

TABLE = TableSpec(
    name="trajectories",
    shape="artifact",
    kind="trajectory",
    meaning="Episodes: solver runs, demonstrations, arena, evaluation and training samples kept.",
    key=("version_id",),
    columns=(
        text("task", "task version"),
        text("environment", "environment version"),
        text("policy", "policy name"),
        text("policy_version", "policy version"),
        integer("sample", "sample index"),
        integer("seed", "sample seed"),
        json_text("steps", "steps with observations"),
        json_text("outcome", "status, failed criteria, detail"),
        text("final_digest", "state digest at the end"),
        text("status", "pass, fail or infra_error"),
        text("purpose", "solver, arena, evaluation, demonstration or training"),
        integer("round", "round"),
    ),
)
