from dataclasses import replace

import pytest

from agent_world.environments.session import open_session
from agent_world.environments.state import State
from agent_world.rollouts.rewards import UnjudgeableTaskError, criterion_holds, judge_all
from agent_world.tasks.model import Criterion
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING, field, schema

START = State(ENVIRONMENT.files)


def judged(task, answer, final=START, **more):
    return judge_all(task, [answer], START, final, ENVIRONMENT.database, **more)[0]


def after(*calls, seed=12):
    with open_session(ENVIRONMENT, seed) as session:
        for name, arguments in calls:
            assert session.call(name, arguments).status == "ok"
        return session.state()


@pytest.fixture(scope="module")
def lent():
    return after(("lend_book", {"book_id": "B5", "member_id": "M2"}))


def test_the_gold_answer_passes():
    assert judged(READING, READING.answer).status == "pass"


def test_an_answer_may_be_spelt_differently():
    assert judged(READING, {"author": "  bo LINDQVIST", "copies": "1"}).status == "pass"


def test_failed_criteria_are_named():
    outcome = judged(READING, {"author": "Ana Ruiz", "copies": 2})
    assert (outcome.status, outcome.failed, outcome.reward) == ("fail", ("author", "copies"), 0.0)


def test_an_answer_of_the_wrong_shape_fails_by_name():
    outcome = judged(READING, {"author": "Bo Lindqvist"})
    assert (outcome.status, outcome.failed) == ("fail", ("answer_schema",))
    assert "copies is missing" in outcome.detail


def test_a_truth_value_is_not_the_number_one():
    assert judged(READING, {"author": "Bo Lindqvist", "copies": True}).status == "fail"


def test_a_write_that_nobody_asked_for_fails(lent):
    assert judged(READING, READING.answer, lent).failed == ("state",)


def test_the_asked_write_passes_whatever_id_it_minted():
    lent_with_another_id = after(("lend_book", {"book_id": "B5", "member_id": "M2"}), seed=999)
    assert judged(WRITING, WRITING.answer, lent_with_another_id).status == "pass"


def test_the_right_answer_without_the_write_fails():
    assert judged(WRITING, WRITING.answer).failed == ("state",)


def test_the_write_done_to_another_row_fails():
    other = after(("lend_book", {"book_id": "B5", "member_id": "M3"}))
    assert judged(WRITING, WRITING.answer, other).failed == ("state",)


def test_a_task_that_nothing_can_fail_is_refused():
    with pytest.raises(UnjudgeableTaskError, match="toy-read has no rubric"):
        judged(replace(READING, rubric=()), READING.answer)
    with pytest.raises(UnjudgeableTaskError, match="toy-program has no verifier"):
        judged(replace(PROGRAM, verifier=None), PROGRAM.answer)


NOTES = schema(name=field("string"), total=field("number"), tags=field("array", items={"type": "string"}))


@pytest.mark.parametrize(
    ("criterion", "answer", "holds"),
    [
        (Criterion(name="c", kind="field_present", field="name"), {"name": "x"}, True),
        (Criterion(name="c", kind="field_present", field="name"), {"name": ""}, False),
        (Criterion(name="c", kind="field_present", field="name"), {}, False),
        (Criterion(name="c", kind="field_equals", field="name", expected="Ab"), {"name": "aB "}, True),
        (Criterion(name="c", kind="field_equals", field="name", expected="Ab"), {"name": "b"}, False),
        (Criterion(name="c", kind="numeric_tolerance", field="total", expected=2, tolerance=1), {"total": "2.9"}, True),
        (Criterion(name="c", kind="numeric_tolerance", field="total", expected=2, tolerance=1), {"total": 3.1}, False),
        (Criterion(name="c", kind="numeric_tolerance", field="total", expected=1, tolerance=1), {"total": True}, False),
        (Criterion(name="c", kind="set_equals", field="tags", expected=["a", "b"]), {"tags": ["B", "a"]}, True),
        (Criterion(name="c", kind="set_equals", field="tags", expected=["a", "b"]), {"tags": ["a"]}, False),
        (Criterion(name="c", kind="set_equals", field="tags", expected=["a"]), {"tags": "a"}, False),
        (Criterion(name="c", kind="order", field="tags", expected=["a", "b"]), {"tags": ["A", "b"]}, True),
        (Criterion(name="c", kind="order", field="tags", expected=["a", "b"]), {"tags": ["b", "a"]}, False),
        (Criterion(name="c", kind="state_equals", expected={}), {}, True),
        (Criterion(name="c", kind="state_equals", expected={"loans": {}}), {}, False),
    ],
)
def test_each_kind_of_criterion(criterion, answer, holds):
    assert criterion_holds(criterion, NOTES, answer, {}) is holds


class Strict:
    """Judges a free-form item by whether its text occurs in the answer."""

    def holds(self, criterion, task, answer):
        return (criterion.text or "") in str(answer)


def test_a_free_form_criterion_goes_to_its_judge():
    item = Criterion(name="tone", kind="free_form", text="Bo")
    task = replace(READING, rubric=(*READING.rubric, item))
    assert judged(task, READING.answer, free_form=Strict()).status == "pass"
    strict = replace(task, rubric=(*READING.rubric, replace(item, text="nowhere")))
    assert judged(strict, READING.answer, free_form=Strict()).failed == ("tone",)


def test_a_free_form_criterion_without_a_judge_is_no_reward():
    task = replace(READING, rubric=(*READING.rubric, Criterion(name="tone", kind="free_form", text="Bo")))
    outcome = judged(task, READING.answer)
    assert (outcome.status, outcome.reward) == ("infra_error", None)


def test_a_program_task_is_judged_by_its_verifier():
    assert judged(PROGRAM, PROGRAM.answer).status == "pass"
    assert judged(PROGRAM, {"titles": ["winter maps", "LETTERS HOME"], "copies": "2"}).status == "pass"
    assert judged(PROGRAM, {"titles": ["Winter Maps"], "copies": 3}).failed == ("titles", "copies")


def test_a_verifier_sees_both_states(lent):
    unjudged_state = replace(PROGRAM, rubric=())
    assert judged(unjudged_state, PROGRAM.answer, lent).failed == ("unasked change",)


@pytest.mark.parametrize(
    "source",
    [
        "def verify(answer, gold, initial, final):\n    raise KeyError('x')",
        "def verify(answer, gold, initial, final):\n    return True",
        "def verify(answer, gold, initial, final):\n    initial.db.execute('DELETE FROM loans')\n    return []",
        "this is no python",
        "import os\ndef verify(answer, gold, initial, final):\n    os._exit(3)",
    ],
)
def test_a_verifier_that_breaks_is_no_reward(source):
    outcome = judged(replace(PROGRAM, verifier=source), PROGRAM.answer)
    assert (outcome.status, outcome.reward) == ("infra_error", None)
    assert outcome.detail.startswith("verifier: ")


def test_answers_judged_together_do_not_see_each_other():
    remembering = """
import toolkit
seen = []
def verify(answer, gold, initial, final):
    seen.append(answer)
    gold["copies"] += 1
    toolkit.changes(initial, final)["seen"] = True
    return [] if len(seen) == 1 and gold["copies"] == 3 else ["second"]
"""
    task = replace(PROGRAM, verifier=remembering)
    outcomes = judge_all(task, [PROGRAM.answer] * 3, START, START, ENVIRONMENT.database)
    assert [outcome.status for outcome in outcomes] == ["pass"] * 3


def test_an_answer_that_kills_the_verifier_spares_its_neighbours():
    fragile = """
import os
def verify(answer, gold, initial, final):
    if answer["copies"] == 13:
        os._exit(1)
    return [] if answer == gold else ["answer"]
"""
    task = replace(PROGRAM, verifier=fragile)
    answers = [PROGRAM.answer, {**PROGRAM.answer, "copies": 13}, {**PROGRAM.answer, "copies": 5}]
    outcomes = judge_all(task, answers, START, START, ENVIRONMENT.database)
    assert [outcome.status for outcome in outcomes] == ["pass", "infra_error", "fail"]
