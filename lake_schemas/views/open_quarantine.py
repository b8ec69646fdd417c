"""What was set aside and is not mended."""

from __future__ import annotations

from lake_schemas.base import moment, text
from lake_schemas.views.base import ViewSpec

VIEW = ViewSpec(
    name="open_quarantine",
    meaning="What was set aside and is not mended: inputs that could not be used, and partitions whose work raised, "
    "unless they were made since.",
    columns=(
        text("stage", "stage"),
        text("item", "file, row, tool, page or partition"),
        text("reason", "typed reason; `failed` for a partition whose work raised"),
        text("detail", "where and why"),
        text("raw_blob", "sha256 of the raw bytes"),
        moment("since", "when it was set aside"),
    ),
    query="""
        WITH newest AS (
            SELECT stage, `partition` AS item, max(commit_version) AS commit_version FROM batches
            GROUP BY stage, `partition`
        ),
        ended AS (
            SELECT DISTINCT b.stage, b.`partition` AS item, substring(b.batch, 1, 32) AS batch
            FROM batches b JOIN newest n
                ON n.stage = b.stage AND n.item = b.`partition` AND n.commit_version = b.commit_version
        )
        SELECT q.stage, q.item, q.reason, q.detail, q.raw_blob, q.recorded_at AS since
        FROM quarantine q
        LEFT JOIN ended e
            ON e.stage = q.stage AND e.item = q.item AND e.batch = split_part(q.event_id, ':', 1)
        WHERE q.reason <> 'failed' OR e.batch IS NOT NULL
    """,
)
