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
        text("subject", "what it was spent on: the partition"),
        real("cpu_s", "CPU seconds of the workers, without sandboxes and the training process", volatile=True),
        real("wall_s", "seconds from its beginning to its end", volatile=True),
        integer("tokens", "model tokens; null when no model was asked"),
        integer("calls", "calls of a model; null when none was asked"),
    ),
)
