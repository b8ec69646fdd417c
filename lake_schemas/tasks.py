"""Verifiable tasks, accepted and rejected candidates."""

from __future__ import annotations

from lake_schemas.base import TableSpec, boolean, integer, json_text, text

PRACTISED = ("practice", "control")
"""Purposes of tasks that are demonstrated only: they skip `random` and `solver`, and earn no reward."""

TABLE = TableSpec(
    name="tasks",
    shape="artifact",
    kind="task",
    meaning="Verifiable tasks, accepted and rejected candidates.",
    key=("version_id",),
    columns=(
        text("task_id", "task id"),
        text("kind", "graph or program"),
        json_text("environments", "pinned environment versions"),
        text("instruction", "what the agent is asked"),
        json_text("user", "what the simulated user knows and wants beyond that; null where there is nothing"),
        json_text("answer_schema", "public field names and types"),
        json_text("answer", "gold answer, from execution"),
        json_text("plan", "gold calls"),
        json_text("shape", "tools of the plan in order"),
        json_text("rubric", "typed criteria"),
        json_text("state_diff", "normalised gold state change"),
        json_text("knobs", "difficulty knobs"),
        integer("seed", "session seed of the gold run"),
        text("solution", "pi_code"),
        text("verifier", "V_code"),
        text("purpose", "general, practice, held_out, arena, targeted or control"),
        integer("round", "round it was made for"),
        json_text("serves", "guideline field it exercises"),
        boolean("accepted", "passed every gate but perhaps the solver's", observed=True),
        text("tier", "train, hard or practice", observed=True),
        integer("solver_passes", "solver runs that were consistent and right", observed=True),
        integer("random_passes", "random runs that passed, of 20", observed=True),
    ),
)
