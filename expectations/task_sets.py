"""Rules of `task_sets`: none but a targeted one is empty, and no evaluation task is a training task.

What evaluation and training tasks share in text or plan is a rule of `tasks`, which has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    training = {task for row in rows if row["purpose"] in ("training", "targeted") for task in row["tasks"]}
    return [
        {
            "name": row["name"],
            "empty": int(not row["size"] and row["purpose"] != "targeted"),
            "trained_on": len(training & set(row["tasks"])) if row["purpose"] in ("held_out", "arena") else 0,
            "miscounted": abs(row["size"] - len(row["tasks"])),
        }
        for row in rows
    ]


def _rules() -> list[gxe.Expectation]:

    from expectations.custom import ExpectNoneLeft

    return [
        ExpectNoneLeft(column="empty"),
        ExpectNoneLeft(column="trained_on"),
        ExpectNoneLeft(column="miscounted"),
    ]


SUITE = Suite(table="task_sets", meaning="evaluation is never on what was trained on", frame=_frame, rules=_rules)
