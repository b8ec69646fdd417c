"""Every rule of every suite: sound rows keep it, a planted violation breaks it and nothing passes by being absent."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from expectations import SUITES, prove

HASH = "a" * 64
Rows = list[dict[str, Any]]


def task(version: str, purpose: str, shape: list[str], *, round: int = 0, tier: str = "train") -> dict[str, Any]:
    """A sound row of `tasks` with a text and a plan of its own."""
    plan = [{"tool": tool, "arguments": {"of": version}} for tool in shape]
    return {
        "version_id": version, "kind": "program", "rubric": [{"name": "x"}], "random_passes": 0, "solver_passes": 3,
        "knobs": {"calls": 2}, "answer_schema": {"properties": {"x": {}}}, "verifier": "def verify(): ...",
        "environments": ["e@1"], "accepted": tier == "train", "tier": tier, "purpose": purpose, "round": round,
        "instruction": f"What of {version}?", "plan": plan, "shape": shape,
        "serves": {"field": "tools"} if purpose == "targeted" else {},
    }  # fmt: skip


SOUND: dict[str, Rows] = {
    "themes": [
        {"artifact_id": "t1", "source": "M1", "title": "Time", "description": "Zones.", "sha256": HASH},
        {"artifact_id": "t2", "source": "M3", "title": "Loans", "description": "Books.", "sha256": HASH},
    ],
    "databases": [
        {
            "version_id": "d@1",
            "digest": HASH,
            "tables": [
                {
                    "primary_key": ["id"], "source": {"package": "p"}, "workflow": None,
                    "foreign_keys": [{"integrity": 0.9}],
                },
                {"primary_key": ["id"], "source": None, "workflow": "loan", "foreign_keys": []},
            ],
        }
    ],
    "tools": [
        {
            "tool_id": "e/a", "version_id": "e/a@1", "accuracy": 0.75, "tests": 4, "accepted": True,
            "description": "Finds a book by its title.", "input_schema": {"type": "object"},
            "output_schema": {"type": "object"},
        }
    ],
    "tool_tests": [
        {"partition": "e", "tool": "a", "kind": kind} for kind in ("typical", "typical", "refusal", "edge")
    ],
    "environments": [
        {"environment_id": "e", "tool_versions": ["a@1"], "tests": 3, "database_version": "d@1"},
    ],
    "tasks": [
        task("general@1", "general", ["a", "b"]),
        task("practice@1", "practice", ["b", "a"], tier="practice"),
        task("held_out@1", "held_out", ["a", "b"]),
        task("arena@1", "arena", ["a", "b"], round=1),
        task("arena@2", "arena", ["a", "c"], round=1),
        *(task(f"targeted@{n}", "targeted", ["a", "c"], round=1) for n in range(5)),
        task("control@1", "control", ["b", "c"], round=1, tier="practice"),
    ],
    "task_sets": [
        {"name": "training", "purpose": "training", "size": 2, "tasks": ["a@1", "b@1"]},
        {"name": "held_out", "purpose": "held_out", "size": 1, "tasks": ["c@1"]},
        {"name": "targeted-r01", "purpose": "targeted", "size": 0, "tasks": []},
    ],
    "trajectories": [
        {"version_id": "x@1", "status": "pass", "steps": [1], "final_digest": HASH, "task": "t@1", "environment": "e@1"}
    ],
    "evaluations": [
        {"point": "pi0", "task_set": "s@1", "task": "t@1", "mode": "greedy", "sample": 0, "status": "pass", "steps": 2}
    ],
    "checkpoints": [
        {"version_id": "c@1", "digest": HASH, "method": "sft", "steps_done": 5, "base": "b@1", "accepted": True},
        {"version_id": "b@1", "digest": HASH, "method": "init", "steps_done": 0, "base": None, "accepted": True},
        {"version_id": "r@1", "digest": HASH, "method": "grpo", "steps_done": 0, "base": "c@1", "accepted": False},
    ],
    "training_metrics": [{"metric": "reward_mean", "step": 0, "value": 0.5}],
    "gate_verdicts": [{"gate": "leak", "subject": "t@1", "accepted": False, "reason": "tool_name"}],
    "diagnoses": [
        {
            "version_id": "d@1",
            "weak": [{"environment": "e", "low": 0.1, "pass_rate": 0.2, "high": 0.4, "samples": 10}],
            "guidelines": [{"environment": "e"}],
            "errors": [{"by": "environment", "name": "e", "rates": [{"low": 0.4, "rate": 0.8, "high": 0.9}]}],
        }
    ],
    "diagnosis_scores": [
        {
            "policy": policy, "episodes": 8, "environment_precision": 1.0, "environment_recall": 0.5,
            "label_precision": 1.0, "label_recall": 0.5,
        }
        for policy in ("healthy", "wrong_tool", "wrong_argument", "missing_step", "early_stop", "loop")
    ],
}  # fmt: skip


def put(**fields: Any) -> Callable[[Rows], None]:
    """Set fields of the first row."""
    return lambda rows: rows[0].update(fields)


def double(rows: Rows) -> None:
    rows.append(dict(rows[0]))


def drop_kind(kind: str) -> Callable[[Rows], None]:
    def plant(rows: Rows) -> None:
        rows[:] = [{**row, "kind": "typical"} if row["kind"] == kind else row for row in rows]

    return plant


def first_table(**fields: Any) -> Callable[[Rows], None]:
    return lambda rows: rows[0]["tables"][0].update(fields)


def of(version: str, **fields: Any) -> Callable[[Rows], None]:
    """Set fields of the row of this version."""
    return lambda rows: next(row for row in rows if row["version_id"] == version).update(fields)


def share(field: str, tested: str, trained: str) -> Callable[[Rows], None]:
    """Give an evaluation task the text or the plan of one that was trained on in another version of its environment."""

    def plant(rows: Rows) -> None:
        by_version = {row["version_id"]: row for row in rows}
        shared = by_version[trained][field]
        by_version[tested].update({field: shared.upper() if field == "instruction" else shared}, environments=["e@2"])

    return plant


PLANTED: list[tuple[str, str, Callable[[Rows], None]]] = [
    ("themes", "unique (artifact_id)", double),
    ("themes", "in_set (source)", put(source="M4")),
    ("themes", "lengths_to_be_between (title)", put(title="")),
    ("themes", "lengths_to_be_between (description)", put(description="")),
    ("themes", "regex (sha256)", put(sha256="abc")),
    ("databases", "regex (digest)", put(digest="abc")),
    ("databases", "between (tables)", lambda rows: rows[0]["tables"].pop()),
    ("databases", "between (foreign_keys)", first_table(foreign_keys=[])),
    ("databases", "none_left (without_key)", first_table(primary_key=[])),
    ("databases", "none_left (without_source)", first_table(source=None)),
    ("databases", "none_left (bad_integrity)", first_table(foreign_keys=[{"integrity": 1.2}])),
    ("tools", "tool_accuracy_above_half", put(accuracy=0.5)),
    ("tools", "not_be_null (accuracy)", put(accuracy=None)),
    ("tools", "unique (version_id)", double),
    ("tools", "between (tests)", put(tests=0)),
    ("tools", "lengths_to_be_between (description)", put(description="Finds.")),
    ("tools", "none_left (without_object_schema)", put(output_schema={"type": "array"})),
    ("tool_tests", "between (tests)", lambda rows: rows.pop(0)),
    ("tool_tests", "between (refusals)", drop_kind("refusal")),
    ("tool_tests", "between (edges)", drop_kind("edge")),
    ("environments", "at_least_one_valid_tool", put(tool_versions=[])),
    ("environments", "not_be_null (valid_tests)", put(tests=None)),
    ("environments", "at_least_one_valid_test", put(tests=0)),
    ("environments", "in_set (pins)", put(database_version="latest")),
    ("tasks", "non_empty_rubric", put(rubric=[])),
    ("tasks", "two_of_five_consistent", put(solver_passes=1)),
    ("tasks", "not_be_null (solver_passes)", put(solver_passes=None)),
    ("tasks", "not_be_null (random_passes)", put(random_passes=None)),
    ("tasks", "random_agents_to_fail", put(random_passes=2)),
    ("tasks", "in_set (kind)", put(kind="essay")),
    ("tasks", "unique (version_id)", double),
    ("tasks", "between (calls)", put(knobs={"calls": 0})),
    ("tasks", "between (answer_fields)", put(answer_schema={"properties": {}})),
    ("tasks", "none_left (without_verifier)", put(verifier=None)),
    ("tasks", "none_left (unpinned)", put(environments=["e"])),
    ("tasks", "none_left (trained_on)", share("instruction", "arena@1", "general@1")),
    ("tasks", "none_left (trained_on)", share("plan", "arena@2", "practice@1")),
    ("tasks", "none_left (trained_on)", share("instruction", "held_out@1", "control@1")),
    ("tasks", "none_left (trained_on)", share("plan", "held_out@1", "targeted@0")),
    ("tasks", "between (new_shapes)", of("arena@2", shape=["b", "a"])),
    ("tasks", "between (serving)", lambda rows: [of(f"targeted@{n}", serves={})(rows) for n in (1, 3)]),
    ("task_sets", "none_left (empty)", put(size=0, tasks=[])),
    ("task_sets", "none_left (trained_on)", lambda rows: rows[1].update(tasks=["a@1"])),
    ("task_sets", "none_left (miscounted)", put(size=3)),
    ("trajectories", "in_set (status)", put(status="maybe")),
    ("trajectories", "between (steps)", put(steps=[])),
    ("trajectories", "none_left (without_digest)", put(final_digest=None)),
    ("trajectories", "none_left (unpinned)", put(task="t")),
    ("evaluations", "unique (sample_key)", double),
    ("evaluations", "in_set (status)", put(status="maybe")),
    ("evaluations", "in_set (mode)", put(mode="best")),
    ("evaluations", "between (steps)", put(steps=-1)),
    ("checkpoints", "regex (digest)", put(digest="abc")),
    ("checkpoints", "in_set (method)", put(method="magic")),
    ("checkpoints", "none_left (untrained)", put(steps_done=0)),
    ("checkpoints", "none_left (without_base)", put(base=None)),
    ("training_metrics", "in_set (metric)", put(metric="vibes")),
    ("training_metrics", "between (step)", put(step=-1)),
    ("training_metrics", "none_left (not_finite)", put(value=float("inf"))),
    ("gate_verdicts", "lengths_to_be_between (gate)", put(gate="")),
    ("gate_verdicts", "lengths_to_be_between (subject)", put(subject="")),
    ("gate_verdicts", "none_left (silent_rejection)", put(reason=None)),
    ("diagnoses", "none_left (without_interval)", lambda rows: rows[0]["weak"][0].update(low=0.3)),
    ("diagnoses", "none_left (labels_without_interval)", lambda rows: rows[0]["errors"][0]["rates"][0].update(low=0.9)),
    ("diagnoses", "none_left (without_distribution)", put(errors=[])),
    ("diagnoses", "none_left (without_samples)", lambda rows: rows[0]["weak"][0].update(samples=0)),
    ("diagnoses", "none_left (without_guideline)", put(guidelines=[])),
    ("diagnosis_scores", "row_count", lambda rows: rows.pop()),
    ("diagnosis_scores", "contain_set (policy)", put(policy="bad_format")),
    ("diagnosis_scores", "unique (policy)", put(policy="loop")),
    ("diagnosis_scores", "between (episodes)", put(episodes=0)),
    ("diagnosis_scores", "between (environment_precision)", put(environment_precision=1.1)),
    ("diagnosis_scores", "between (environment_recall)", put(environment_recall=-0.1)),
    ("diagnosis_scores", "between (label_precision)", put(label_precision=1.1)),
    ("diagnosis_scores", "between (label_recall)", put(label_recall=-0.1)),
]


@pytest.mark.parametrize("table", sorted(SUITES))
def test_sound_rows_keep_every_rule(table):
    verdicts = prove(SUITES[table], SOUND[table])
    assert [verdict.rule for verdict in verdicts if not verdict.success] == []


@pytest.mark.parametrize(("table", "rule", "plant"), PLANTED, ids=[f"{table}: {rule}" for table, rule, _ in PLANTED])
def test_a_planted_violation_breaks_its_rule(table, rule, plant):
    rows = copy.deepcopy(SOUND[table])
    plant(rows)
    assert any(rule in verdict.rule for verdict in prove(SUITES[table], rows) if not verdict.success)


def test_no_rule_is_without_a_planted_violation():
    rules = {(table, verdict.rule) for table in SUITES for verdict in prove(SUITES[table], SOUND[table])}
    uncovered = {(t, rule) for t, rule in rules if not any(t == table and part in rule for table, part, _ in PLANTED)}
    assert uncovered == set()


def test_an_empty_table_is_no_proof():
    assert not any(verdict.success for verdict in prove(SUITES["tasks"], []))


def test_one_targeted_task_of_five_may_serve_nothing_and_what_is_trained_on_later_may_have_a_shape_of_the_arena():
    rows = copy.deepcopy(SOUND["tasks"])
    of("targeted@3", serves={})(rows)
    of("control@1", shape=["a", "c"])(rows)
    assert all(verdict.success for verdict in prove(SUITES["tasks"], rows))


def test_rejected_tools_are_not_what_the_rule_is_about():
    rows = [*SOUND["tools"], {**SOUND["tools"][0], "version_id": "e/b@1", "accuracy": 0.1, "accepted": False}]
    assert all(verdict.success for verdict in prove(SUITES["tools"], rows))
