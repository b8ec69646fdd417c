"""The tables of the lake: one module a table, all of them in `TABLES`."""

from __future__ import annotations

from lake_schemas import (
    batches,
    benchmark_results,
    blobs,
    checkpoints,
    costs,
    databases,
    diagnoses,
    diagnosis_scores,
    edges,
    environments,
    evaluations,
    events,
    gate_verdicts,
    quarantine,
    rewards,
    runs,
    runtimes,
    signatures,
    snapshots,
    task_sets,
    tasks,
    taxonomy,
    themes,
    tool_graph_edges,
    tool_tests,
    tools,
    training_metrics,
    trajectories,
    trees,
    versions,
)
from lake_schemas.base import ColumnSpec, TableSpec

TABLES: dict[str, TableSpec] = {
    module.TABLE.name: module.TABLE
    for module in (
        batches,
        benchmark_results,
        blobs,
        checkpoints,
        costs,
        databases,
        diagnoses,
        diagnosis_scores,
        edges,
        environments,
        evaluations,
        gate_verdicts,
        quarantine,
        rewards,
        runs,
        runtimes,
        signatures,
        snapshots,
        task_sets,
        tasks,
        taxonomy,
        themes,
        tool_graph_edges,
        tool_tests,
        tools,
        training_metrics,
        trajectories,
        trees,
        versions,
    )
}
"""Every projection of the lake by name."""

EVENTS: TableSpec = events.TABLE
"""The log that every projection is folded from."""

__all__ = ["EVENTS", "TABLES", "ColumnSpec", "TableSpec"]
