"""What work cost: seconds, tokens, calls."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, real, text

TABLE = TableSpec(
    name="costs",
    shape="fact",
    meaning="What work cost: seconds, tokens, calls.",
    key=("stage", "subject"),
    columns=(
        text("stage", "stage"),
        text("subject", "what it was spent on"),
        real("cpu_s", "CPU seconds", volatile=True),
        real("wall_s", "wall seconds", volatile=True),
        integer("tokens", "model tokens"),
        integer("calls", "model or tool calls"),
    ),
)
