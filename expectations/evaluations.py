"""Rules of `evaluations`: one row a sample, each with an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "sample_key": "/".join(str(row[k]) for k in ("point", "task_set", "task", "mode", "sample")),
            "status": row["status"],
            "mode": row["mode"],
            "steps": row["steps"],
        }
        for row in rows
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnValuesToBeUnique(column="sample_key"),
        gxe.ExpectColumnValuesToBeInSet(column="status", value_set=["pass", "fail", "infra_error"]),
        gxe.ExpectColumnValuesToBeInSet(column="mode", value_set=["greedy", "sampled"]),
        gxe.ExpectColumnValuesToBeBetween(column="steps", min_value=0),
    ]


SUITE = Suite(table="evaluations", meaning="every sample is counted once", frame=_frame, rules=_rules)
