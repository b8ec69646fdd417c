"""What each round found weak, what was done about it, and what came of that."""

from __future__ import annotations

from lake_schemas.base import integer, json_text, real, text
from lake_schemas.views.base import ViewSpec

_FOUND = ("environment", "category", "pass_rate", "low", "high", "samples", "severity", "labels")
_WEAK = ", ".join(f"get_json_object(w, '$.{name}') AS {name}" for name in _FOUND)

VIEW = ViewSpec(
    name="weaknesses",
    meaning="One row a round and environment that its diagnosis found weak: the evidence, the guideline, what was made "
    "for it, and the sampled held-out pass rate there before and after the round.",
    columns=(
        integer("round", "round"),
        integer("rank", "place in the weak set W, 1 for the weakest"),
        text("environment", "environment key"),
        text("category", "first-level category"),
        real("pass_rate", "share of the arena episodes there that passed"),
        real("low", "lower end of its 95 % Wilson interval"),
        real("high", "upper end of that interval"),
        integer("samples", "arena episodes with an outcome"),
        real("severity", "how surely it is weak; 1 - high"),
        json_text("failures", "failure label to number of episodes"),
        text("ability", "failure label that the guideline answers"),
        text("guideline", "what to practise, in words"),
        text("enriched_version", "environment version made richer for this round; null when none was"),
        integer("targeted_tasks", "targeted tasks kept for training"),
        integer("practice_tasks", "practice tasks kept, which are demonstrated"),
        real("rate_before", "sampled held-out pass rate of the policy before the round, there"),
        real("rate_after", "that of the policy after it; null while it is not evaluated"),
        text("policy_version", "policy diagnosed"),
        text("diagnosis", "diagnosis version"),
    ),
    query=f"""
        WITH named AS (
            SELECT version_id, round, policy_version, explode(json_items(weak)) AS w
            FROM diagnoses WHERE state = 'created'
        ),
        weak_ones AS (SELECT version_id, round, policy_version, {_WEAK} FROM named),
        ranked AS (
            SELECT
                *, row_number() OVER (
                    PARTITION BY version_id ORDER BY CAST(severity AS DOUBLE) DESC, environment
                ) AS place
            FROM weak_ones
        ),
        advised AS (SELECT version_id, explode(json_items(guidelines)) AS g FROM diagnoses WHERE state = 'created'),
        advice AS (
            SELECT
                version_id, get_json_object(g, '$.environment') AS environment,
                get_json_object(g, '$.ability') AS ability, get_json_object(g, '$.text') AS guideline
            FROM advised
        ),
        made AS (
            SELECT
                `partition` AS environment, round,
                sum(CASE WHEN purpose = 'targeted' AND tier = 'train' THEN 1 ELSE 0 END) AS targeted_tasks,
                sum(CASE WHEN purpose = 'practice' AND tier = 'practice' THEN 1 ELSE 0 END) AS practice_tasks
            FROM tasks WHERE state = 'created'
            GROUP BY `partition`, round
        ),
        enriched AS (
            SELECT environment_id, round, max(version_id) AS version_id FROM environments WHERE round > 0
            GROUP BY environment_id, round
        ),
        task_rates AS (
            SELECT point, environment, task, avg(CAST(status = 'pass' AS DOUBLE)) AS rate
            FROM evaluations
            WHERE mode = 'sampled' AND status <> 'infra_error'
            GROUP BY point, environment, task
        ),
        rates AS (SELECT point, environment, avg(rate) AS rate FROM task_rates GROUP BY point, environment)
        SELECT
            r.round, r.place AS rank, r.environment, r.category, r.pass_rate, r.low, r.high, r.samples, r.severity,
            r.labels AS failures, a.ability, a.guideline, e.version_id AS enriched_version,
            coalesce(m.targeted_tasks, 0) AS targeted_tasks, coalesce(m.practice_tasks, 0) AS practice_tasks,
            earlier.rate AS rate_before, later.rate AS rate_after, r.policy_version, r.version_id AS diagnosis
        FROM ranked r
        LEFT JOIN advice a ON a.version_id = r.version_id AND a.environment = r.environment
        LEFT JOIN made m ON m.environment = r.environment AND m.round = r.round
        LEFT JOIN enriched e ON e.environment_id = r.environment AND e.round = r.round
        LEFT JOIN rates earlier
            ON earlier.environment = r.environment AND earlier.point = concat('pi', CAST(r.round - 1 AS STRING))
        LEFT JOIN rates later
            ON later.environment = r.environment AND later.point = concat('pi', CAST(r.round AS STRING))
    """,
)
