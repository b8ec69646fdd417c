"""Rules of `gate_verdicts`: a rejection says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "gate": row["gate"],
            "subject": row["subject"],
            "silent_rejection": int(not row["accepted"] and not row["reason"]),
        }
        for row in rows
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    from expectations.custom import ExpectNoneLeft

    return [
        gxe.ExpectColumnValueLengthsToBeBetween(column="gate", min_value=1),
        gxe.ExpectColumnValueLengthsToBeBetween(column="subject", min_value=1),
        ExpectNoneLeft(column="silent_rejection"),
    ]


SUITE = Suite(table="gate_verdicts", meaning="no candidate is rejected without a reason", frame=_frame, rules=_rules)
