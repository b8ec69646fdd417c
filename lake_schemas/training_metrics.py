"""Canonical training metrics; null where a back-end does not report one."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, real, text

TABLE = TableSpec(
    name="training_metrics",
    shape="fact",
    meaning="Canonical training metrics; null where a back-end does not report one.",
    key=("job", "step", "metric",),
    columns=(
        text("job", "sha256 of the TrainJob"),
        text("stage", "sft, grpo"),
        integer("step", "optimiser step"),
        text("metric", "canonical name"),
        real("value", "value"),
    ),
)
