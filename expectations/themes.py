"""Rules of `themes`: every theme parses, names its source and is there once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{key: row[key] for key in ("artifact_id", "source", "title", "description", "sha256")} for row in rows]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnValuesToBeUnique(column="artifact_id"),
        gxe.ExpectColumnValuesToBeInSet(column="source", value_set=["M1", "M2", "M3"]),
        gxe.ExpectColumnValueLengthsToBeBetween(column="title", min_value=1),
        gxe.ExpectColumnValueLengthsToBeBetween(column="description", min_value=1),
        gxe.ExpectColumnValuesToMatchRegex(column="sha256", regex="^[0-9a-f]{64}$"),
    ]


SUITE = Suite(table="themes", meaning="themes are well-formed and unique", frame=_frame, rules=_rules)
