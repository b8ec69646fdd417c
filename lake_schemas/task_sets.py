"""Named sets of task versions: training, held-out, arena, targeted."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, json_text, text

TABLE = TableSpec(
    name="task_sets",
    shape="artifact",
    kind="task_set",
    meaning="Named sets of task versions: training, held-out, arena, targeted.",
    key=("version_id",),
    columns=(
        text("name", "set name"),
        text("purpose", "training, held_out, arena or targeted; training also for what was chosen out of another set"),
        integer("round", "round"),
        json_text("tasks", "task versions, sorted"),
        integer("size", "number of tasks"),
        json_text("passes", "of a set chosen by trying: every task tried, and how often its policy passed it"),
    ),
)
