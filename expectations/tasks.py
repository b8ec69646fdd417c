"""Rules of `tasks` (accepted rows): rubric, consistency, guessing, pins."""

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
            "kind": row["kind"],
            "criteria": len(row["rubric"]),
            "random_passes": row["random_passes"],
            "solver_passes": row["solver_passes"],
            "calls": row["knobs"]["calls"],
            "answer_fields": len(row["answer_schema"]["properties"]),
            "without_verifier": int(row["kind"] == "program" and not row["verifier"]),
            "unpinned": sum("@" not in version for version in row["environments"]),
        }
        for row in rows
        if row["accepted"] and row["tier"] == "train"
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    from expectations.custom import (
        ExpectNoneLeft,
        ExpectNonEmptyRubric,
        ExpectRandomAgentsToFail,
        ExpectTwoOfFiveConsistent,
    )

    return [
        ExpectNonEmptyRubric(),
        gxe.ExpectColumnValuesToNotBeNull(column="solver_passes"),  # other rules pass over nulls
        gxe.ExpectColumnValuesToNotBeNull(column="random_passes"),
        ExpectTwoOfFiveConsistent(),
        ExpectRandomAgentsToFail(),
        gxe.ExpectColumnValuesToBeInSet(column="kind", value_set=["graph", "program"]),
        gxe.ExpectColumnValuesToBeUnique(column="version_id"),
        gxe.ExpectColumnValuesToBeBetween(column="calls", min_value=1),
        gxe.ExpectColumnValuesToBeBetween(column="answer_fields", min_value=1),
        ExpectNoneLeft(column="without_verifier"),
        ExpectNoneLeft(column="unpinned"),
    ]


SUITE = Suite(table="tasks", meaning="accepted tasks are verifiable and cannot be guessed", frame=_frame, rules=_rules)
