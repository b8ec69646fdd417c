"""Rules of `tool_tests`: at least four a tool, one of them a refusal and one an edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    kinds: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        kinds.setdefault((row["partition"], row["tool"]), []).append(row["kind"])
    return [
        {
            "tool": f"{partition}/{tool}",
            "tests": len(seen),
            "refusals": seen.count("refusal"),
            "edges": seen.count("edge"),
        }
        for (partition, tool), seen in sorted(kinds.items())
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnValuesToBeBetween(column="tests", min_value=4),
        gxe.ExpectColumnValuesToBeBetween(column="refusals", min_value=1),
        gxe.ExpectColumnValuesToBeBetween(column="edges", min_value=1),
    ]


SUITE = Suite(table="tool_tests", meaning="every tool is tested from several sides", frame=_frame, rules=_rules)
