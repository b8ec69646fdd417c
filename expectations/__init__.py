"""Great Expectations suites: one module a table, all of them in `SUITES`."""

from __future__ import annotations

from expectations import (
    checkpoints,
    databases,
    diagnoses,
    diagnosis_scores,
    environments,
    evaluations,
    gate_verdicts,
    task_sets,
    tasks,
    themes,
    tool_tests,
    tools,
    training_metrics,
    trajectories,
)
from expectations.base import RuleVerdict, Suite, prove

SUITES: dict[str, Suite] = {
    module.SUITE.table: module.SUITE
    for module in (
        checkpoints,
        databases,
        diagnoses,
        diagnosis_scores,
        environments,
        evaluations,
        gate_verdicts,
        task_sets,
        tasks,
        themes,
        tool_tests,
        tools,
        training_metrics,
        trajectories,
    )
}

__all__ = ["SUITES", "RuleVerdict", "Suite", "prove"]
