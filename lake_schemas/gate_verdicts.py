"""One row a candidate and gate."""

from __future__ import annotations

from lake_schemas.base import TableSpec, boolean, integer, json_text, text

GATE_ORDER = (
    "theme", "match", "database", "complexify", "tool", "environment",
    "rubric", "leak", "evidence", "null", "gold", "wrong_answer", "state", "random", "solver", "demonstration",
    "trajectory", "checkpoint",
)  # fmt: skip
"""The gates in the order of the pipeline. `demonstration` has no verdicts: the ladder finds out if there is one."""

TABLE = TableSpec(
    name="gate_verdicts",
    shape="fact",
    meaning="One row a candidate and gate.",
    key=("gate", "subject", "round"),
    columns=(
        text("gate", "gate name"),
        text("subject_kind", "theme, database, tool, environment, task, trajectory or checkpoint"),
        text("subject", "version or id of the candidate"),
        text("environment", "environment key"),
        boolean("accepted", "verdict"),
        text("reason", "typed reason when rejected"),
        json_text("evidence", "what the gate saw"),
        text("author", "who proposed it"),
        integer("round", "round"),
    ),
)
