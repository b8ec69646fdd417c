import random
import sqlite3
from dataclasses import replace

import pytest

from agent_world.environments.state import State
from agent_world.rollouts.verifier import verify
from agent_world.tasks.catalogue import Catalogue
from agent_world.tasks.execution import run_plan, run_solution
from agent_world.tasks.program_tasks import READING, WRITING, task_from
from agent_world.tasks.programs.draft import Bench
from agent_world.tasks.synthesis import synthesise


@pytest.fixture(scope="module")
def programs(candidates):
    return [task for task in candidates if task.kind == "program"]


def verdict(environment, task, calls, answer, **changes):
    trace = run_plan(environment, calls, task.seed)
    initial = State(environment.files)
    return verify(task, [{**answer, **changes}], initial, trace.final, trace.change)[0].failed


def test_the_solution_runs_to_the_recorded_answer_and_calls(environment, programs):
    for task in programs:
        solved = run_solution(environment, task.solution, task.seed)
        assert not isinstance(solved, str), solved
        assert solved.answer == task.answer
        assert solved.trace.calls == task.plan


def test_the_verifier_agrees_with_gold(environment, programs):
    assert [verdict(environment, task, task.plan, task.answer) for task in programs] == [()] * len(programs)


def test_the_verifier_recomputes_the_answer_by_sql_alone(environment, programs):
    for task in programs:
        code = task.verifier.replace("from toolkit import changes", "")
        own = {}
        exec(code, own)
        db = sqlite3.connect(":memory:")
        db.row_factory = sqlite3.Row
        db.deserialize(environment.files["data.sqlite"])
        answer, _ = own["expected"](db)
        assert not any(tool.name in code for tool in environment.tools)
        assert {name: task.answer[name] for name in answer} == answer


def test_the_verifier_names_the_field_that_is_wrong(environment, programs):
    best = next(task for task in programs if "book" in task.answer and not task.writes)
    assert verdict(environment, best, best.plan, best.answer, book="Nobody's Book") == ("answer_book",)


def test_the_verifier_refuses_gold_that_the_records_contradict(environment, programs):
    best = next(task for task in programs if "book" in task.answer and not task.writes)
    lie = {**best.answer, "book": "Nobody's Book"}
    failed = verdict(environment, replace(best, answer=lie), best.plan, lie)
    assert "gold_book" in failed


def test_the_verifier_sees_a_write_that_is_missing_or_about_another_row(environment, programs):
    writing = [task for task in programs if task.writes and "state_book_id" not in task.answer]
    task = next(task for task in writing if "SUBJECTS = [(" in task.verifier)
    assert "state" in verdict(environment, task, [c for c in task.plan if c.tool != "lend_book"], task.answer)
    other = {"B1": "B4", "B3": "B4", "B4": "B1", "B5": "B1", "B6": "B1", "B2": "B1"}
    moved = [
        type(c)(tool=c.tool, arguments={**c.arguments, "book_id": other[c.arguments["book_id"]]})
        if c.tool == "lend_book"
        else c
        for c in task.plan
    ]
    assert {"state", "state_book_id"} <= set(verdict(environment, task, moved, task.answer))


def test_solutions_loop_and_branch(programs):
    assert all("for " in task.solution or "if " in task.solution for task in programs)
    assert any(task.knobs.loops for task in programs)
    assert any(task.knobs.branches for task in programs)


def test_a_solution_that_raises_is_a_reason_and_not_a_crash(environment):
    assert "ZeroDivisionError" in run_solution(environment, "def solve(call):\n    return 1 / 0\n", 1)


def test_a_solution_that_calls_without_end_is_stopped(environment):
    endless = "def solve(call):\n    while True:\n        call('count_books_by_genre', {'genre': 'novel'})\n"
    assert "too many calls" in run_solution(environment, endless, 1)


def test_a_refusal_reaches_the_solution_as_an_agent_sees_it(environment):
    refused = "def solve(call):\n    return call('get_book', {'book_id': 'B99'})\n"
    solved = run_solution(environment, refused, 1)
    assert solved.answer["error"]["code"] == "not_found"
    assert solved.trace.observations[0].status == "refused"


def test_a_call_that_an_agent_could_not_make_is_found_out(environment):
    invalid = "def solve(call):\n    return call('count_books_by_genre', {'genre': 'western'})\n"
    assert "otherwise than an agent" in run_solution(environment, invalid, 1)


def test_what_a_refused_call_did_is_undone_before_the_next(environment):
    twice = (
        "def solve(call):\n"
        "    first = call('lend_book', {'book_id': 'B3', 'member_id': 'M1'})\n"
        "    second = call('lend_book', {'book_id': 'B3', 'member_id': 'M2'})\n"
        "    return {'first': first['status'], 'second': second['error']['code']}\n"
    )
    solved = run_solution(environment, twice, 1)
    assert solved.answer == {"first": "out", "second": "no_copies"}
    assert len(solved.trace.change["loans"]["added"]) == 1


@pytest.mark.parametrize("name", sorted({*READING, *WRITING} - {"scanned", "looked_into", "tallied", "for_each"}))
def test_every_pattern_that_fits_the_data_draws_something(catalogue, name):
    bench, (pattern, _) = Bench(catalogue=catalogue), {**READING, **WRITING}[name]
    drafts = [draft for seed in range(20) if (draft := pattern(bench, random.Random(seed)))]
    assert drafts
    assert {draft.pattern for draft in drafts} == {name}
    assert len({draft.text for draft in drafts}) > len(drafts) / 2


@pytest.mark.parametrize("name", ["scanned", "looked_into", "tallied", "for_each"])
def test_patterns_that_page_through_lists_execute_and_verify(library, name):
    bench, (pattern, _) = Bench(catalogue=Catalogue(library)), {**READING, **WRITING}[name]
    done = 0
    for seed in range(20):
        draft = pattern(bench, random.Random(seed))
        solved = run_solution(library, draft.solution, seed) if draft else "nothing to draw"
        if isinstance(solved, str):
            continue
        task = task_from(bench, draft, solved, seed)
        checked = verify(task, [task.answer], State(library.files), solved.trace.final, solved.trace.change)[0]
        assert (checked.error, checked.failed) == (None, ()), (draft.text, task.answer)
        assert draft.pattern == name
        done += 1
    assert done >= 2


def test_paging_makes_plans_of_twelve_calls_and_more(library):
    tasks = synthesise(library, count=60, seed=4, kinds=("program",))
    assert max(len(task.plan) for task in tasks) >= 12
    pages = next(task for task in tasks if task.shape.count("list_books") >= 4)
    assert [call.arguments.get("page", 1) for call in pages.plan if call.tool == "list_books"][:3] == [1, 2, 3]
