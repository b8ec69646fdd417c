"""The validity ladder: candidates and survivors of each gate."""

from __future__ import annotations

from lake_schemas.base import integer, text
from lake_schemas.gate_verdicts import GATE_ORDER
from lake_schemas.tasks import PRACTISED
from lake_schemas.views.base import ViewSpec

_STEPS = " ".join(f"WHEN '{gate}' THEN {step}" for step, gate in enumerate(GATE_ORDER, 1))
_PRACTISED = ", ".join(f"'{purpose}'" for purpose in PRACTISED)

VIEW = ViewSpec(
    name="validity_ladder",
    meaning="The validity ladder: how many candidates each gate judged and how many it accepted. Counts add up.",
    columns=(
        text("line", "rewarded: tasks that can earn rewards and all they rest on; practised: tasks only demonstrated"),
        integer("step", "place of the gate in the pipeline, from 1; null for a gate that it does not know"),
        text("gate", "gate name; `demonstration` asks of each practised task that passed whether an episode shows it"),
        text("subject_kind", "what the gate judges"),
        text("environment", "environment key"),
        text("author", "who proposed the candidates"),
        integer("round", "round"),
        integer("candidates", "candidates judged"),
        integer("accepted", "those the gate let through"),
    ),
    query=f"""
        WITH practice AS (SELECT version_id AS task FROM tasks WHERE purpose IN ({_PRACTISED})),
        showing AS (
            SELECT t.version_id AS trajectory, p.task FROM trajectories t JOIN practice p ON p.task = t.task
        ),
        passed AS (
            SELECT v.subject AS task, max(v.environment) AS environment, max(v.author) AS author, max(v.round) AS round
            FROM gate_verdicts v JOIN practice p ON p.task = v.subject
            WHERE v.subject_kind = 'task'
            GROUP BY v.subject
            HAVING min(CASE WHEN v.accepted THEN 1 ELSE 0 END) = 1
        ),
        demonstrated AS (
            SELECT DISTINCT s.task
            FROM gate_verdicts v JOIN showing s ON s.trajectory = v.subject
            WHERE v.gate = 'trajectory'
        ),
        dealt AS (
            SELECT
                CASE WHEN p.task IS NULL AND s.trajectory IS NULL THEN 'rewarded' ELSE 'practised' END AS line,
                v.gate, v.subject_kind, v.environment, v.author, v.round, v.accepted
            FROM gate_verdicts v
            LEFT JOIN practice p ON p.task = v.subject
            LEFT JOIN showing s ON s.trajectory = v.subject
            UNION ALL
            SELECT 'practised', 'demonstration', 'task', p.environment, p.author, p.round, d.task IS NOT NULL
            FROM passed p LEFT JOIN demonstrated d ON d.task = p.task
        )
        SELECT
            line, CASE gate {_STEPS} END AS step, gate, subject_kind, environment, author, round,
            count(*) AS candidates, sum(CASE WHEN accepted THEN 1 ELSE 0 END) AS accepted
        FROM dealt
        GROUP BY line, gate, subject_kind, environment, author, round
    """,
)
