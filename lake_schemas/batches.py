"""Batches that were committed, each exactly once."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, moment, text

TABLE = TableSpec(
    name="batches",
    shape="derived",
    meaning="Batches that were committed, each exactly once.",
    key=("batch",),
    columns=(
        text("batch", "sha256 of stage, partition and derivation"),
        text("stage", "stage"),
        text("partition", "logical partition"),
        text("derivation", "derivation of the batch"),
        text("run_id", "the run that committed it", volatile=True),
        text("code_version", "the code that committed it"),
        integer("events", "events in it"),
        integer("commit_version", "version of events it arrived with", volatile=True),
        moment("committed_at", "when it was committed"),
    ),
)
