"""The log of everything that happened: the truth from which every other table is folded."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from lake_schemas.base import ColumnSpec, TableSpec, integer, json_text, moment, text

EventType = Literal[
    "created",  # a new version of an artifact
    "observed",  # something measured about a version; with a content hash: the same content was made again
    "recorded",  # a row of a fact table
    "retired",  # a version that is no longer to be used
    "reinstated",  # a retired version that may be used again; `state` says which state it had
    "stored",  # blobs that this batch wrote
    "listed",  # a tree of blobs that this batch wrote
    "committed",  # the batch itself, always its last event
    "reused",  # a later run found this batch done and skipped the work
    "diverged",  # a second content for one derivation: the alarm to look at
]

PARENTS = pa.list_(pa.struct([("version_id", pa.string()), ("role", pa.string())]))

TABLE = TableSpec(
    name="events",
    shape="log",
    meaning="The append-only log of everything that happened; every other table is folded from it.",
    key=("event_id",),
    columns=(
        integer("commit_version", "version of this table it arrived with: the order of everything", volatile=True),
        integer("position", "place within the commit", volatile=True),
        text("event_id", "batch id and place within the batch"),
        text(
            "event_type",
            "created, observed, recorded, retired, reinstated, stored, listed, committed, reused or diverged",
        ),
        text("kind", "artifact kind, or the fact table of a recorded row"),
        text("artifact_id", "artifact the event is about"),
        text("version_id", "exact version the event is about"),
        text("content_hash", "sha256 of kind, payload and blob root"),
        text("derivation_hash", "sha256 of code version, parameters and parents: the cache key"),
        ColumnSpec(name="parents", type=PARENTS, meaning="exact versions it was made from, with their roles"),
        text("blob_root", "root of the blob tree"),
        json_text("payload", "canonical JSON; null when it is a blob"),
        text("payload_blob", "sha256 of the payload when it is larger than 64 KB"),
        text("batch", "sha256 of stage, partition and derivation: what is committed exactly once"),
        text("stage", "stage of the batch"),
        text("partition", "logical partition of the batch"),
        text("derivation", "derivation of the batch"),
        text("run_id", "the run that wrote it", volatile=True),
        text("code_version", "the code that wrote it"),
        integer("schema_version", "version of this schema"),
        moment("ts", "when the batch was committed"),
    ),
)
