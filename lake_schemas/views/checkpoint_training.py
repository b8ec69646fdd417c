"""Checkpoints, and what each was trained on."""

from __future__ import annotations

from lake_schemas.base import boolean, integer, text
from lake_schemas.views.base import ViewSpec

VIEW = ViewSpec(
    name="checkpoint_training",
    meaning="One row a current checkpoint: what it was trained from, on which task set or demonstrations, how long.",
    columns=(
        text("name", "untrained, sft, pi0, pi1, ..."),
        integer("round", "round"),
        text("method", "init, sft or grpo"),
        text("trained_from", "name of the checkpoint that it started from"),
        integer("steps", "optimiser steps"),
        text("task_set", "name of the task set that it was trained on; null when it learnt from demonstrations"),
        integer("tasks", "tasks of that set"),
        integer("tried", "tasks tried to choose them; null when the set was not chosen by trying"),
        integer("new_demonstrations", "demonstrations of its own round"),
        integer("rehearsed", "demonstrations of earlier rounds"),
        boolean("accepted", "passed the checkpoint gate; what did not is never trained on from"),
        text("checkpoint", "checkpoint version"),
        text("task_set_version", "task set version"),
        text("base_version", "checkpoint version that it started from"),
    ),
    query="""
        WITH learnt AS (
            SELECT
                e.child, sum(CASE WHEN t.round = c.round THEN 1 ELSE 0 END) AS fresh,
                sum(CASE WHEN t.round = c.round THEN 0 ELSE 1 END) AS rehearsed
            FROM edges e
            JOIN trajectories t ON t.version_id = e.parent AND t.purpose = 'demonstration'
            JOIN checkpoints c ON c.version_id = e.child
            WHERE e.role = 'demonstration'
            GROUP BY e.child
        )
        SELECT
            c.name, c.round, c.method, b.name AS trained_from, c.steps_done AS steps, s.name AS task_set,
            s.size AS tasks, array_size(json_object_keys(s.passes)) AS tried, l.fresh AS new_demonstrations,
            l.rehearsed, c.accepted, c.version_id AS checkpoint, s.version_id AS task_set_version,
            b.version_id AS base_version
        FROM checkpoints c
        LEFT JOIN checkpoints b ON b.version_id = c.base
        LEFT JOIN task_sets s ON s.version_id = c.task_set
        LEFT JOIN learnt l ON l.child = c.version_id
        WHERE c.state = 'created'
    """,
)
