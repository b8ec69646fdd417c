"""What making tasks yields, and what a kept one costs."""

from __future__ import annotations

from lake_schemas.base import integer, real, text
from lake_schemas.views.base import ViewSpec

VIEW = ViewSpec(
    name="task_yield",
    meaning="Of the tasks proposed for each environment, purpose and round: how many were kept, and what a kept one "
    "cost in work, and in episodes and steps of the solver.",
    columns=(
        text("environment", "environment key"),
        text("purpose", "general, practice, held_out, arena, targeted or control"),
        integer("round", "round the tasks were made for"),
        integer("candidates", "tasks proposed"),
        integer("sound", "passed every gate but perhaps the solver's; not asked of practice and control: null"),
        integer("hard", "sound, but the solver cannot do them"),
        integer("kept", "tasks of tier train or practice"),
        real("yield", "kept / candidates"),
        integer("episodes", "episodes played by the solver on all candidates, demonstrations included"),
        integer("steps", "steps of these episodes"),
        real("cpu_s", "CPU seconds that the stage which proposed them took there; null where none were recorded"),
        real("wall_s", "seconds on the clock that it took"),
        real("cpu_s_per_kept", "cpu_s / kept; null when none was kept"),
        real("episodes_per_kept", "episodes / kept; null when none was kept"),
        real("steps_per_kept", "steps / kept; null when none was kept"),
    ),
    query="""
        WITH played AS (
            SELECT task, count(*) AS episodes, sum(json_array_length(steps)) AS steps
            FROM trajectories
            WHERE purpose IN ('solver', 'demonstration')
            GROUP BY task
        ),
        made AS (
            SELECT t.*, b.stage FROM tasks t
            JOIN versions v ON v.version_id = t.version_id
            JOIN batches b ON b.batch = v.batch
            WHERE t.state = 'created'
        ),
        counted AS (
            SELECT
                m.`partition` AS environment, m.purpose, m.round, count(*) AS candidates,
                sum(CASE WHEN m.purpose NOT IN ('practice', 'control') THEN CAST(m.accepted AS INT) END) AS sound,
                sum(CASE WHEN m.tier = 'hard' THEN 1 ELSE 0 END) AS hard,
                sum(CASE WHEN m.tier IN ('train', 'practice') THEN 1 ELSE 0 END) AS kept,
                sum(coalesce(p.episodes, 0)) AS episodes, sum(coalesce(p.steps, 0)) AS steps
            FROM made m LEFT JOIN played p ON p.task = m.version_id
            GROUP BY m.`partition`, m.purpose, m.round
        ),
        stages AS (SELECT DISTINCT `partition` AS environment, purpose, round, stage FROM made),
        spent AS (
            SELECT s.environment, s.purpose, s.round, sum(c.cpu_s) AS cpu_s, sum(c.wall_s) AS wall_s
            FROM stages s JOIN costs c ON c.stage = s.stage AND c.subject = s.environment
            GROUP BY s.environment, s.purpose, s.round
        )
        SELECT
            c.*, s.cpu_s, s.wall_s, CAST(c.kept AS DOUBLE) / c.candidates AS yield,
            s.cpu_s / nullif(c.kept, 0) AS cpu_s_per_kept,
            CAST(c.episodes AS DOUBLE) / nullif(c.kept, 0) AS episodes_per_kept,
            CAST(c.steps AS DOUBLE) / nullif(c.kept, 0) AS steps_per_kept
        FROM counted c LEFT JOIN spent s
            ON s.environment = c.environment AND s.purpose = c.purpose AND s.round = c.round
    """,
)
