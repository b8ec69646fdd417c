import json
import sqlite3

import pytest

from agent_world.environments.session import open_session
from agent_world.environments.state import State, normalised
from agent_world.rollouts.rewards import judge_all
from agent_world.tasks.gates import gate_task
from agent_world.tasks.leak import leaks
from agent_world.tasks.synthesis import synthesise


def test_both_kinds_come_reading_and_writing(candidates):
    cells = {(task.kind, task.writes) for task in candidates}
    assert cells == {("graph", False), ("graph", True), ("program", False), ("program", True)}
    assert sum(task.writes for task in candidates) >= 0.4 * len(candidates)


def test_short_and_long_plans_come(candidates):
    lengths = [len(task.plan) for task in candidates]
    assert min(lengths) <= 2
    assert max(lengths) >= 8
    assert 2.5 <= sum(lengths) / len(lengths) <= 6


def test_every_plan_replays_to_the_recorded_change(environment, candidates):
    for task in candidates:
        with open_session(environment, task.seed) as session:
            statuses = {session.call(call.tool, call.arguments).status for call in task.plan}
            change = normalised(session.diff(), environment.database)
        assert statuses <= {"ok", "refused"}
        assert change == task.state_diff


def test_the_gold_answer_passes_and_an_empty_one_does_not(environment, candidates):
    initial = State(environment.files)
    for task in candidates:
        with open_session(environment, task.seed) as session:
            for call in task.plan:
                session.call(call.tool, call.arguments)
            final = session.state()
        right, empty = judge_all(task, [task.answer, {}], initial, final, environment.database)
        assert (right.status, empty.status) == ("pass", "fail"), task.instruction


def test_candidates_pass_every_gate_before_the_random_agents(environment, candidates):
    for task in candidates:
        verdict = gate_task(task, environment, solver=lambda seed: None, seed=9, thorough=False)
        assert verdict.rejected_by is None, (task.instruction, verdict.rejected_by)


def test_no_text_names_a_tool_or_an_identifier(environment, candidates):
    assert [leaks(task, environment) for task in candidates if leaks(task, environment)] == []


def test_reading_tasks_ask_for_at_least_two_things(candidates):
    assert all(len(task.answer) >= 2 for task in candidates if not task.writes)


def test_answers_fit_their_schema_and_rubric(candidates):
    for task in candidates:
        fields = list(task.answer)
        assert fields == list(task.answer_schema["properties"]) == task.answer_schema["required"]
        assert [item.field for item in task.rubric] == [*fields, None]
        assert task.rubric[-1].kind == "state_equals"
        assert all(schema["description"] for schema in task.answer_schema["properties"].values())


def test_names_are_quoted_exactly_as_in_the_records(environment, candidates):
    db = sqlite3.connect(":memory:")
    db.deserialize(environment.files["data.sqlite"])
    columns = ("title FROM books", "genre FROM books", "name FROM members", "name FROM authors")
    values = {value for column in columns for (value,) in db.execute(f"SELECT {column}")}
    for task in candidates:
        quoted = set(task.instruction.split('"')[1::2])
        assert quoted <= values, task.instruction


def test_no_answer_holds_an_id_that_the_run_made(candidates):
    assert all("LN" not in json.dumps(task.answer) for task in candidates)


def test_a_fact_that_a_later_change_made_untrue_is_not_asked_for(candidates):
    returned = [t for t in candidates if t.kind == "graph" and "return_book" in t.shape and "status" in t.answer]
    assert returned
    assert all(task.answer["status"] == "returned" for task in returned)


def test_texts_and_plans_do_not_repeat(candidates):
    assert len({task.instruction for task in candidates}) == len(candidates)
    assert len({json.dumps([[c.tool, dict(c.arguments)] for c in task.plan]) for task in candidates}) == len(candidates)


def test_instructions_are_short(candidates):
    words = [len(task.instruction.split()) for task in candidates]
    assert sum(words) / len(words) < 40


def test_the_same_seed_gives_the_same_tasks(environment, candidates):
    assert synthesise(environment, count=40, seed=1)[:20] == candidates[:20]


def test_another_seed_gives_other_tasks(environment, candidates):
    known = {task.task_id for task in candidates}
    assert sum(task.task_id in known for task in synthesise(environment, count=20, seed=2)) < 10


def test_knobs_say_what_the_plan_does(environment, candidates):
    for task in candidates:
        knobs = task.knobs
        assert knobs.calls == len(task.plan) == len(task.shape)
        assert knobs.distinct_tools == len(set(task.shape))
        assert (knobs.writes > 0) == task.writes
        assert knobs.rewriting in (0, 1, 2)


@pytest.mark.parametrize("kind", ["graph", "program"])
def test_one_kind_can_be_asked_for(environment, kind):
    assert {task.kind for task in synthesise(environment, count=6, seed=3, kinds=(kind,))} == {kind}
