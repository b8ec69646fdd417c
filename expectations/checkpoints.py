"""Rules of `checkpoints`: a digest, a known method and base; of what its gate accepted also steps done."""

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
            "digest": row["digest"],
            "method": row["method"],
            "untrained": int(row["method"] != "init" and row["accepted"] is not False and not row["steps_done"]),
            "without_base": int(row["method"] != "init" and not row["base"]),
        }
        for row in rows
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    from expectations.custom import ExpectNoneLeft

    return [
        gxe.ExpectColumnValuesToMatchRegex(column="digest", regex="^[0-9a-f]{64}$"),
        gxe.ExpectColumnValuesToBeInSet(column="method", value_set=["init", "sft", "grpo"]),
        ExpectNoneLeft(column="untrained"),
        ExpectNoneLeft(column="without_base"),
    ]


SUITE = Suite(
    table="checkpoints", meaning="every checkpoint was really trained, from a known base", frame=_frame, rules=_rules
)
