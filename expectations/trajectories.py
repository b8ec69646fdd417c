"""Rules of `trajectories`: a three-way outcome, and a digest to replay to."""

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
            "status": row["status"],
            "steps": len(row["steps"]),
            "without_digest": int(row["status"] != "infra_error" and not row["final_digest"]),
            "unpinned": int("@" not in row["task"] or "@" not in row["environment"]),
        }
        for row in rows
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    from expectations.custom import ExpectNoneLeft

    return [
        gxe.ExpectColumnValuesToBeInSet(column="status", value_set=["pass", "fail", "infra_error"]),
        gxe.ExpectColumnValuesToBeBetween(column="steps", min_value=1),
        ExpectNoneLeft(column="without_digest"),
        ExpectNoneLeft(column="unpinned"),
    ]


SUITE = Suite(table="trajectories", meaning="every episode can be replayed", frame=_frame, rules=_rules)
