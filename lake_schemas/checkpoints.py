"""Policies; identity is the digest of tensors and configuration."""

from __future__ import annotations

from lake_schemas.base import TableSpec, boolean, integer, json_text, text

TABLE = TableSpec(
    name="checkpoints",
    shape="artifact",
    kind="checkpoint",
    meaning="Policies; identity is the digest of tensors and configuration.",
    key=("version_id",),
    columns=(
        text("name", "untrained, sft, pi0, pi1, ..."),
        integer("round", "round"),
        text("digest", "digest of tensors and configuration"),
        text("method", "init, sft or grpo"),
        text("task_set", "task set version trained on"),
        text("base", "checkpoint version it started from"),
        text("job", "sha256 of the TrainJob"),
        integer("steps_done", "optimiser steps"),
        boolean("accepted", "passed the checkpoint gate; what did not is never trained on from", observed=True),
        text("mlflow_run", "MLflow run", observed=True, volatile=True),
        json_text("metrics", "final metrics", observed=True),
    ),
)
