"""Rules of `tasks` (accepted rows): rubric, consistency, guessing, pins, what an evaluation shares with training.

What tasks share is found out again from their rows, not by the keys that synthesis went by.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe


_TRAINED_ON = ("general", "practice", "targeted", "control")
_TESTED = ("held_out", "arena")


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    kept = [row for row in rows if row["accepted"] and row["tier"] == "train"]
    trained = [row for row in rows if row["purpose"] in _TRAINED_ON and row["tier"] in ("train", "practice")]
    texts, plans = set(map(_text, trained)), set(map(_plan, trained))
    batches: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in kept:
        batches[_batch(row)].append(row)
    learnt = {_shape(row): row["round"] for row in sorted(trained, key=lambda row: -row["round"])}

    def share(row: Row, purpose: str, holds: Callable[[Row], bool]) -> float | None:
        return fmean(map(holds, batches[_batch(row)])) if row["purpose"] == purpose else None

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
            "trained_on": int(row["purpose"] in _TESTED and (_text(row) in texts or _plan(row) in plans)),
            "new_shapes": share(row, "arena", lambda row: learnt.get(_shape(row), row["round"]) >= row["round"]),
            "serving": share(row, "targeted", lambda row: bool(row["serves"])),
        }
        for row in kept
    ]


def _batch(row: Row) -> tuple[Any, ...]:
    """Which tasks it was made together with."""
    return row["purpose"], row["round"], _environments(row)


def _environments(row: Row) -> tuple[str, ...]:
    return tuple(sorted(version.partition("@")[0] for version in row["environments"]))


def _text(row: Row) -> str:
    return " ".join(row["instruction"].casefold().split())


def _plan(row: Row) -> tuple[Any, ...]:
    return _environments(row), json.dumps(row["plan"], sort_keys=True)


def _shape(row: Row) -> tuple[Any, ...]:
    return _environments(row), tuple(row["shape"])


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
        ExpectNoneLeft(column="trained_on"),
        gxe.ExpectColumnValuesToBeBetween(column="new_shapes", min_value=0.5),
        gxe.ExpectColumnValuesToBeBetween(column="serving", min_value=0.8),
    ]


SUITE = Suite(table="tasks", meaning="accepted tasks are verifiable, hard to guess and new", frame=_frame, rules=_rules)
