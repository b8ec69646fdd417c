"""Rules of `environments`: a valid tool and a valid test each, pinned parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "environment_id": row["environment_id"],
            "valid_tools": len(row["tool_versions"]),
            "valid_tests": row["tests"],
            "pins": int(all("@" in version for version in [row["database_version"], *row["tool_versions"]])),
        }
        for row in rows
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    from expectations.custom import ExpectAtLeastOneValidTest, ExpectAtLeastOneValidTool

    return [
        gxe.ExpectColumnValuesToNotBeNull(column="valid_tests"),  # other rules pass over nulls
        ExpectAtLeastOneValidTool(),
        ExpectAtLeastOneValidTest(),
        gxe.ExpectColumnValuesToBeInSet(column="pins", value_set=[1]),
    ]


SUITE = Suite(table="environments", meaning="accepted environments can be used", frame=_frame, rules=_rules)
