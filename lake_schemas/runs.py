"""Runs and what became of them."""

from __future__ import annotations

from lake_schemas.base import TableSpec, json_text, text

TABLE = TableSpec(
    name="runs",
    shape="fact",
    meaning="Runs and what became of them.",
    key=("run", "status"),
    columns=(
        text("run", "run id", volatile=True),
        text("status", "started, succeeded or failed"),
        json_text("parameters", "parameters"),
        text("dagster_run", "Dagster run id", volatile=True),
        text("mlflow_run", "MLflow run id", volatile=True),
    ),
)
