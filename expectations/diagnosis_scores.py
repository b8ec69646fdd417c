"""Rules of `diagnosis_scores`: enough policies, the healthy one among them, each scored once on real episodes.

How high a score must be is no rule: it is measured and reported, and a poor one must not stop a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe

_POLICIES = 6
_RATES = ("environment_precision", "environment_recall", "label_precision", "label_recall")


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in ("policy", "episodes", *_RATES)} for row in rows]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectTableRowCountToBeBetween(min_value=_POLICIES),
        gxe.ExpectColumnDistinctValuesToContainSet(column="policy", value_set=["healthy"]),
        gxe.ExpectColumnValuesToBeUnique(column="policy"),
        gxe.ExpectColumnValuesToBeBetween(column="episodes", min_value=1),
        *(gxe.ExpectColumnValuesToBeBetween(column=rate, min_value=0, max_value=1) for rate in _RATES),
    ]


SUITE = Suite(
    table="diagnosis_scores", meaning="the diagnosis is scored on enough planted faults", frame=_frame, rules=_rules
)
