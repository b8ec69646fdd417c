"""Rules of `training_metrics`: canonical names, finite values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite
from lake_schemas.training_metrics import METRICS

if TYPE_CHECKING:
    import great_expectations.expectations as gxe


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "metric": row["metric"],
            "step": row["step"],
            "not_finite": int(row["value"] is not None and row["value"] - row["value"] != 0),
        }
        for row in rows
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    from expectations.custom import ExpectNoneLeft

    return [
        gxe.ExpectColumnValuesToBeInSet(column="metric", value_set=list(METRICS)),
        gxe.ExpectColumnValuesToBeBetween(column="step", min_value=0),
        ExpectNoneLeft(column="not_finite"),
    ]


SUITE = Suite(
    table="training_metrics", meaning="training reports canonical, finite numbers", frame=_frame, rules=_rules
)
