"""Rules of `databases`: related tables, keys, provenance, a digest."""

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
            "tables": len(row["tables"]),
            "foreign_keys": sum(len(table["foreign_keys"]) for table in row["tables"]),
            "without_key": sum(not table["primary_key"] for table in row["tables"]),
            "without_source": sum(not (table["source"] or table["workflow"]) for table in row["tables"]),
            "bad_integrity": sum(not 0 <= key["integrity"] <= 1 for t in row["tables"] for key in t["foreign_keys"]),
        }
        for row in rows
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    from expectations.custom import ExpectNoneLeft

    return [
        gxe.ExpectColumnValuesToMatchRegex(column="digest", regex="^[0-9a-f]{64}$"),
        gxe.ExpectColumnValuesToBeBetween(column="tables", min_value=2),
        gxe.ExpectColumnValuesToBeBetween(column="foreign_keys", min_value=1),
        ExpectNoneLeft(column="without_key"),
        ExpectNoneLeft(column="without_source"),
        ExpectNoneLeft(column="bad_integrity"),
    ]


SUITE = Suite(table="databases", meaning="every database is relational and traceable", frame=_frame, rules=_rules)
