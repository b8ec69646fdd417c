from __future__ import annotations

import re

import pytest

from agent_world import world
from agent_world.reporting.figures import differences_table
from agent_world.reporting.report import write_report
from agent_world.reporting.rounds import gains_table, rounds_by_set_table, trainings_table

WEAK, SOUND = "weak-env", "sound-env"
PASSES = {
    "pi0": {WEAK: 0, SOUND: 8},
    "pi1-demonstrations": {WEAK: 6, SOUND: 8},
    "pi1": {WEAK: 8, SOUND: 8},
    "control1": {WEAK: 2, SOUND: 8},
    "pi2": {WEAK: 8, SOUND: 8},
    "control2": {WEAK: 4, SOUND: 8},
}
"""How many of eight samples of each task pass at each point."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    opened = world.open(tmp_path_factory.mktemp("rounds") / "lake", create=True)
    with opened.begin("toy", derivation="d0") as batch:
        for point, passes in PASSES.items():
            for environment, passed in passes.items():
                for task in range(5):
                    for sample in range(8):
                        batch.record("evaluations", row(point, environment, task, sample, sample < passed))
        batch.create("diagnosis", "diagnosis-r01", DIAGNOSIS)
    return opened


def row(point, environment, task, sample, passed):
    return {
        "point": point, "task_set": "held_out@0", "task": f"{environment}/{task}@0", "environment": environment,
        "kind": "graph", "policy_version": f"{point}@0", "mode": "sampled", "sample": sample,
        "status": "pass" if passed else "fail", "steps": 3, "failure": None, "round": int(re.search(r"\d", point)[0]),
    }  # fmt: skip


DIAGNOSIS = {
    "round": 1,
    "policy_version": "pi0@0",
    "weak": [
        {
            "environment": WEAK, "category": "c", "pass_rate": 0.0, "low": 0.0, "high": 0.1, "samples": 40,
            "labels": {"loop": 40}, "severity": 0.9,
        }
    ],
    "guidelines": [{"environment": WEAK, "text": "practise"}],
    "errors": {},
    "summary": "One is weak.",
}  # fmt: skip


def test_the_gain_of_a_round_is_shared_out_to_its_parts(lake):
    rows = {row["part"]: row for row in gains_table(lake)}
    assert rows["demonstrations"]["share of it"] == pytest.approx(0.75)
    assert rows["GRPO"]["share of it"] == pytest.approx(0.25)
    assert {row["gain of the round"] for row in rows.values()} == {rows["GRPO"]["gain of the round"]}


def test_the_weak_environments_of_a_round_stand_apart_with_the_control_beside_them(lake):
    rows = {row["environments"]: row for row in rounds_by_set_table(lake)}
    assert set(rows) == {"all", "weak"}
    assert rows["weak"]["gain"].startswith("1.000 [0.099")
    assert rows["weak"]["gain of the control"].startswith("0.250")
    assert rows["weak"]["beyond the control"].startswith("0.750")
    assert (rows["weak"]["tasks"], rows["all"]["tasks"]) == (5, 10)
    assert rows["all"]["gain"].startswith("0.500")


def test_every_round_is_compared_with_the_one_before_and_with_its_control(lake):
    rows = [row for row in differences_table(lake) if row["environments"] == "weak"]
    assert [(row["from"], row["to"]) for row in rows] == [
        ("pi0", "pi1"), ("control1", "pi1"), ("pi1", "pi2"), ("control2", "pi2"), ("pi0", "pi2"),
    ]  # fmt: skip
    assert [row["difference"][:5] for row in rows] == ["1.000", "0.750", "0.000", "0.500", "1.000"]


def test_the_report_shows_them(lake):
    page = write_report(lake)
    assert "share of it" in page
    assert "beyond the control" in page


def test_every_checkpoint_says_what_it_was_trained_on(tmp_path):
    opened = world.open(tmp_path / "lake", create=True)
    with opened.begin("toy", derivation="d0") as batch:
        old, new = (
            batch.create("trajectory", name, {"purpose": "demonstration", "round": round})
            for name, round in (("old", 0), ("new", 1))
        )
        tried = {"task_set": None, "size": 1, "tasks": ["t@1"], "passes": {"t@1": 2, "t@2": 0}}
        tasks = batch.create("task_set", "learnable-pi1", tried)
        first = batch.create("checkpoint", "pi0", {"name": "pi0", "round": 0, "method": "sft", "steps_done": 5},
                             parents=[(old, "demonstration")])  # fmt: skip
        second = {"name": "pi1-demonstrations", "round": 1, "method": "sft", "steps_done": 3, "base": first}
        second = batch.create("checkpoint", "pi1-demonstrations", second,
                              parents=[(old, "demonstration"), (new, "demonstration")])  # fmt: skip
        third = {"name": "pi1", "round": 1, "method": "grpo", "steps_done": 2, "base": second, "task_set": tasks}
        third = batch.create("checkpoint", "pi1", third, parents=[(tasks, "task_set")])
        batch.observe(third, {"accepted": False})
    shown = [tuple(row.values()) for row in trainings_table(opened)]
    assert shown == [
        ("pi0", "sft", None, 5, 1, 0, None, None, None),
        ("pi1-demonstrations", "sft", "pi0", 3, 1, 1, None, None, None),
        ("pi1", "grpo", "pi1-demonstrations", 2, None, None, 1, 2, False),
    ]
