import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from agent_world import world
from agent_world.world import save_task
from dagster_project.cli.task import command
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING
from tests.toy_lake import save_toy


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> str:
    uri = str(tmp_path_factory.mktemp("lake"))
    opened = world.open(uri, create=True)
    with opened.begin("toy", derivation="d0") as batch:
        version, _ = save_toy(batch, ENVIRONMENT)
        for task in (READING, WRITING, PROGRAM):
            saved = save_task(batch, replace(task, environments=(version,)))
            batch.observe(saved, {"accepted": True, "tier": "train", "solver_passes": 5, "random_passes": 0})
        batch.record(
            "gate_verdicts",
            {"gate": "leak", "subject_kind": "task", "subject": "toy-read", "environment": "toy-library",
             "accepted": True, "reason": None, "evidence": {}, "author": "rule", "round": 0},
        )  # fmt: skip
    return uri


def task(lake, *arguments):
    return CliRunner().invoke(command, [*arguments, "--lake", lake], catch_exceptions=False)


def test_tasks_are_listed_with_what_the_gates_measured(lake):
    rows = json.loads(task(lake, "list", "--format", "json").stdout)
    assert [(row["kind"], row["tier"], row["writes"]) for row in rows] == [
        ("graph", "train", False), ("graph", "train", True), ("program", "train", False)
    ]  # fmt: skip
    assert json.loads(task(lake, "list", "--format", "json", "--tier", "hard").stdout) == []
    assert len(json.loads(task(lake, "list", "--format", "json", "--environment", "toy").stdout)) == 3


def test_a_task_is_shown_without_its_answer_unless_asked(lake):
    shown = json.loads(task(lake, "show", "toy-read", "--format", "json").stdout)
    assert shown["instruction"] == READING.instruction
    assert not {"answer", "plan", "rubric"} & shown.keys()
    assert [gate["gate"] for gate in shown["gates"]] == ["leak"]
    gold = json.loads(task(lake, "show", "toy-read", "--gold", "--format", "json").stdout)
    assert gold["answer"] == READING.answer


@pytest.mark.parametrize(
    ("policy", "status"), [("gold", "pass"), ("null", "fail"), ("random", "fail"), ("wrong", "fail")]
)
@pytest.mark.parametrize("name", ["toy-read", "toy-write", "toy-program"])
def test_scripted_policies_attempt_tasks(lake, policy, status, name):
    [row] = json.loads(task(lake, "attempt", name, "--policy", policy, "--format", "json").stdout)
    assert row["status"] == status
    assert row["steps"]


def test_every_step_is_shown(lake):
    shown = task(lake, "attempt", "toy-write", "--policy", "gold")
    assert WRITING.instruction in shown.stderr
    for word in ("search_books", "lend_book", "pass"):
        assert word in shown.stdout


def test_samples_are_rows(lake):
    rows = json.loads(
        task(lake, "attempt", "toy-read", "--policy", "random", "--samples", "3", "--format", "json").stdout
    )
    assert [row["sample"] for row in rows] == [0, 1, 2]


@pytest.mark.parametrize("name", ["show", "attempt"])
def test_help_says_that_a_task_may_be_named_by_its_start(name):
    shown = CliRunner().invoke(command, [name, "--help"]).stdout
    assert "TASK is a version or key of a task, or a unique start of one" in shown


def test_an_unknown_policy_task_or_environment_is_one_clear_error(lake):
    from agent_world.errors import AgentWorldError

    attempts = (("toy-read", "--policy", "nobody"), ("no-such-task", "--policy", "gold"))
    for arguments in (*(("attempt", *given) for given in attempts), ("list", "--environment", "nowhere")):
        result = CliRunner().invoke(command, [*arguments, "--lake", lake])
        assert isinstance(result.exception, AgentWorldError)
        assert "\n" not in str(result.exception)
