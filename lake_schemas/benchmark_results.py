"""Results on foreign benchmarks."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, real, text

TABLE = TableSpec(
    name="benchmark_results",
    shape="fact",
    meaning="Results on foreign benchmarks.",
    key=("benchmark", "policy_version", "metric"),
    columns=(
        text("benchmark", "name"),
        text("policy_version", "policy"),
        text("metric", "metric"),
        real("value", "value"),
        integer("runs", "runs averaged"),
    ),
)
