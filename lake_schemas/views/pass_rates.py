"""How policies fare on the held-out set, cut in five ways."""

from __future__ import annotations

from lake_schemas.base import integer, real, text
from lake_schemas.views.base import ViewSpec

_CUTS = {
    "all": "''",
    "environment": "environment",
    "category": "category",
    "kind": "kind",
    "difficulty": "calls",
}
_Z = 1.96
_ROOT = f"sqrt((rate * (1 - rate) + {_Z * _Z} / (4 * tasks)) / tasks)"
_CENTRE = f"(rate + {_Z * _Z} / (2 * tasks)) / (1 + {_Z * _Z} / tasks)"
_HALF = f"{_Z} * {_ROOT} / (1 + {_Z * _Z} / tasks)"

_SLICES = " UNION ALL ".join(
    f"SELECT point, mode, round, '{cut}' AS cut, {value} AS value, outcomes, passes, infra_errors, rate FROM placed"
    for cut, value in _CUTS.items()
)

VIEW = ViewSpec(
    name="pass_rates",
    meaning="Pass rates of each evaluated point on its task set: over all, by environment, category, kind and "
    "difficulty, with 95 % Wilson intervals over tasks. Choose one `cut`: the rows of different cuts overlap.",
    columns=(
        text("point", "untrained, sft, pi0, pi1, ... or control1, ...: the policy evaluated"),
        text("mode", "greedy or sampled"),
        integer("round", "round"),
        text("cut", "all, environment, category, kind or difficulty: what the tasks are grouped by"),
        text("value", "the environment key, category, kind, or number of gold calls (difficulty); empty for all"),
        integer("tasks", "tasks with an outcome"),
        integer("samples", "episodes with an outcome"),
        integer("passes", "those of them that passed"),
        integer("infra_errors", "episodes without an outcome, no part of a rate"),
        real("rate", "mean over tasks of the share of a task's episodes that passed, as in the report"),
        real("low", "lower end of the 95 % Wilson interval, a task counting once; the report's is by bootstrap"),
        real("high", "upper end of that interval"),
    ),
    query=f"""
        WITH played AS (
            SELECT
                point, mode, round, environment, kind, task,
                sum(CASE WHEN status = 'infra_error' THEN 0 ELSE 1 END) AS outcomes,
                sum(CASE WHEN status = 'pass' THEN 1 ELSE 0 END) AS passes,
                sum(CASE WHEN status = 'infra_error' THEN 1 ELSE 0 END) AS infra_errors
            FROM evaluations
            GROUP BY point, mode, round, environment, kind, task
        ),
        categories AS (
            SELECT environment_id, max(category) AS category FROM environments WHERE state = 'created'
            GROUP BY environment_id
        ),
        placed AS (
            SELECT
                p.*, c.category, get_json_object(t.knobs, '$.calls') AS calls,
                CAST(p.passes AS DOUBLE) / nullif(p.outcomes, 0) AS rate
            FROM played p
            LEFT JOIN categories c ON c.environment_id = p.environment
            LEFT JOIN tasks t ON t.version_id = p.task
        ),
        cuts AS ({_SLICES}),
        rated AS (
            SELECT
                point, mode, round, cut, value, count(rate) AS tasks, sum(outcomes) AS samples,
                sum(passes) AS passes, sum(infra_errors) AS infra_errors, avg(rate) AS rate
            FROM cuts
            GROUP BY point, mode, round, cut, value
        )
        SELECT
            *, CASE WHEN tasks > 0 THEN least(rate, greatest(0, {_CENTRE} - {_HALF})) END AS low,
            CASE WHEN tasks > 0 THEN greatest(rate, least(1, {_CENTRE} + {_HALF})) END AS high
        FROM rated
    """,
)
