"""Under which versions of Python and SQLite each stage did its work: what neither pins from host to host."""

from __future__ import annotations

from lake_schemas.base import TableSpec, text

TABLE = TableSpec(
    name="runtimes",
    shape="fact",
    meaning="Under which versions of Python and SQLite each stage did its work: what neither pins from host to host.",
    key=("stage", "subject"),
    columns=(
        text("stage", "stage"),
        text("subject", "what was worked on: the partition"),
        text("python", "version of Python, such as 3.11", volatile=True),
        text("sqlite", "version of the SQLite library, such as 3.40.1", volatile=True),
    ),
)
