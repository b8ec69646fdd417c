"""One row a sample of the held-out or arena evaluation."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, text

TABLE = TableSpec(
    name="evaluations",
    shape="fact",
    meaning="One row a sample of the held-out or arena evaluation.",
    key=("point", "task_set", "task", "mode", "sample"),
    columns=(
        text("point", "untrained, sft, pi0, pi1, pi2 or control"),
        text("task_set", "task set version"),
        text("task", "task version"),
        text("environment", "environment key"),
        text("kind", "graph or program"),
        text("policy_version", "policy version"),
        text("mode", "greedy or sampled"),
        integer("sample", "sample index"),
        text("status", "pass, fail or infra_error"),
        integer("steps", "steps taken"),
        text("failure", "failure label"),
        integer("round", "round"),
    ),
)
