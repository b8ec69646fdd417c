"""The validity ladder adds up: what a gate of tasks judges is what the one before accepted."""

from __future__ import annotations

from itertools import pairwise

import pytest

from agent_world import world
from agent_world.reporting import plots
from agent_world.reporting.ladder import failures, ladder, ladder_by_environment, ladders
from agent_world.reporting.report import write_report
from agent_world.tasks.verdicts import GATES
from assets.verdicts import verdict

CHEAP = GATES[: GATES.index("random")]
TASKS = {
    # task: purpose, environment, round, the gate that says no, whether it was demonstrated
    "kept": ("general", "e1", 0, None, True),
    "guessed": ("general", "e1", 0, "random", False),
    "hard": ("held_out", "e2", 0, "solver", False),
    "asked-for": ("targeted", "e1", 1, None, True),
    "leaks": ("targeted", "e1", 1, "leak", False),
    "shown": ("practice", "e1", 0, None, True),
    "not-shown": ("practice", "e2", 0, None, False),
    "not-gold": ("practice", "e1", 0, "gold", False),
    "control": ("control", "e1", 1, None, True),
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    opened = world.open(tmp_path_factory.mktemp("ladder") / "lake", create=True)
    with opened.begin("toy", derivation="d0") as batch:
        verdict(batch, "environment", "environment", "database@1", accepted=True, environment="e1")
        for name, (purpose, environment, round, against, shown) in TASKS.items():
            where = {"environment": environment, "round": round}
            version = batch.create("task", name, {"purpose": purpose, "round": round})
            for gate in CHEAP if purpose in ("practice", "control") else GATES:
                reason = f"{gate}_says_no" if gate == against else None
                verdict(batch, gate, "task", version, accepted=reason is None, reason=reason, **where)
                if reason:
                    break
            if shown:
                run = batch.create("trajectory", f"run-{name}", {"task": version, "purpose": "demonstration"})
                verdict(batch, "trajectory", "trajectory", run, accepted=True, **where)
    return opened


def counts(verdicts):
    return {row["gate"]: (row["candidates"], row["accepted"]) for row in ladder(verdicts)}


def test_each_gate_judges_what_the_one_before_accepted(lake):
    rewarded, practised = map(counts, ladders(lake))
    for found, gates in ((rewarded, GATES), (practised, (*CHEAP, "demonstration", "trajectory"))):
        for before, after in pairwise(gates):
            assert found[after][0] == found[before][1], (before, after)
    assert (rewarded["rubric"], rewarded["leak"], rewarded["random"], rewarded["solver"]) == (
        (5, 5), (5, 4), (4, 3), (3, 2),
    )  # fmt: skip
    assert rewarded["trajectory"] == (2, 2)
    assert (practised["rubric"], practised["gold"]) == ((4, 4), (4, 3))
    assert (practised["demonstration"], practised["trajectory"]) == ((3, 2), (2, 2))


def test_what_was_never_demonstrated_has_a_reason(lake):
    rows = {row["gate"]: row for row in ladder(ladders(lake).practised)}
    assert rows["demonstration"]["reasons"] == ["no_run_passes 1"]
    assert rows["demonstration"]["of"] == ["task"]
    assert [row["gate"] for row in failures(lake.read("gate_verdicts"))] == ["leak", "gold", "random", "solver"]


def test_the_ladder_stands_by_environment_author_and_round(lake):
    rows = ladder_by_environment(ladders(lake).rewarded)
    assert [(row["environment key"], row["author"], row["round"]) for row in rows] == [
        ("e1", "rule", 0), ("e1", "rule", 1), ("e2", "rule", 0),
    ]  # fmt: skip
    assert [(row["environment"], row["rubric"], row["leak"], row["random"], row["solver"]) for row in rows] == [
        ("1/1", "2/2", "2/2", "1/2", "1/1"), (None, "2/2", "1/2", "1/1", "1/1"), (None, "1/1", "1/1", "1/1", "0/1"),
    ]  # fmt: skip
    practised = ladder_by_environment(ladders(lake).practised)
    assert [(row["environment key"], row["round"], row["demonstration"]) for row in practised] == [
        ("e1", 0, "1/1"), ("e1", 1, "1/1"), ("e2", 0, "0/1"),
    ]  # fmt: skip


def test_the_plot_says_what_each_gate_judges_and_how_many(lake):
    rows = ladder(ladders(lake).rewarded)
    (axes,) = plots.ladder(rows).axes
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["environment (environment)", "rubric (task)"]
    assert [text.get_text().strip() for text in axes.texts][:3] == ["1 of 1", "5 of 5", "4 of 5"]


def test_the_report_shows_both_ladders_and_each_by_environment(lake):
    page = write_report(lake)
    assert "gate by gate: tasks that can earn rewards" in page
    assert "gate by gate: tasks that are only demonstrated" in page
    assert page.count("by environment, author and round") == 2
    assert "no_run_passes 1" in page
