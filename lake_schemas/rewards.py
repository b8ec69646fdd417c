"""Reward of a trajectory, by which judge."""

from __future__ import annotations

from lake_schemas.base import TableSpec, json_text, real, text

TABLE = TableSpec(
    name="rewards",
    shape="fact",
    meaning="Reward of a trajectory, by which judge.",
    key=("trajectory",),
    columns=(
        text("trajectory", "trajectory version"),
        text("task", "task version"),
        text("status", "pass, fail or infra_error"),
        real("reward", "1, 0 or null"),
        json_text("failed", "criteria or assertions that did not hold"),
    ),
)
