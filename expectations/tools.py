"""Rules of `tools` (accepted rows): the paper's accuracy bound, schemas, no shadowing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "tool_id": row["tool_id"],
            "version_id": row["version_id"],
            "accuracy": row["accuracy"],
            "tests": row["tests"],
            "description": row["description"],
            "without_object_schema": int(
                row["input_schema"].get("type") != "object" or row["output_schema"].get("type") != "object"
            ),
        }
        for row in rows
        if row["accepted"]
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    from expectations.custom import ExpectNoneLeft, ExpectToolAccuracyAboveHalf

    return [
        gxe.ExpectColumnValuesToNotBeNull(column="accuracy"),  # other rules pass over nulls
        ExpectToolAccuracyAboveHalf(),
        gxe.ExpectColumnValuesToBeUnique(column="version_id"),
        gxe.ExpectColumnValuesToBeBetween(column="tests", min_value=1),
        gxe.ExpectColumnValueLengthsToBeBetween(column="description", min_value=20),
        ExpectNoneLeft(column="without_object_schema"),
    ]


SUITE = Suite(table="tools", meaning="accepted tools pass more than half of their tests", frame=_frame, rules=_rules)
