"""Rules of `diagnoses`: weaknesses and failure labels have intervals, weaknesses samples and a guideline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "version_id": row["version_id"],
            "without_interval": sum(not w["low"] <= w["pass_rate"] <= w["high"] for w in row["weak"]),
            "labels_without_interval": sum(
                not rate["low"] <= rate["rate"] <= rate["high"] for error in row["errors"] for rate in error["rates"]
            ),
            "without_distribution": len(
                {w["environment"] for w in row["weak"]} - {e["name"] for e in row["errors"] if e["by"] == "environment"}
            ),
            "without_samples": sum(w["samples"] < 1 for w in row["weak"]),
            "without_guideline": len(
                {w["environment"] for w in row["weak"]} - {g["environment"] for g in row["guidelines"]}
            ),
        }
        for row in rows
    ]


def _rules() -> list[gxe.Expectation]:
    from expectations.custom import ExpectNoneLeft

    return [
        ExpectNoneLeft(column="without_interval"),
        ExpectNoneLeft(column="labels_without_interval"),
        ExpectNoneLeft(column="without_distribution"),
        ExpectNoneLeft(column="without_samples"),
        ExpectNoneLeft(column="without_guideline"),
    ]


SUITE = Suite(table="diagnoses", meaning="every weakness is measured and answered", frame=_frame, rules=_rules)
