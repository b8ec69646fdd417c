import os
from dataclasses import replace

import pytest

from agent_world.environments.json_state import JsonState, json_state
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


def seen(source, initial, final, database=ENVIRONMENT.database):
    """What the function ``seen(initial, final)`` of `source` gives in a verifier: it goes out as a failure's name."""
    source += "\ndef verify(answer, gold, initial, final):\n    return [repr(seen(initial, final))]\n"
    task = replace(PROGRAM, rubric=(), verifier=source)
    (outcome,) = judge_all(task, [PROGRAM.answer], initial, final, database)
    return outcome.failed[0] if outcome.failed else outcome.detail


def test_a_verifier_sees_records_and_documents_as_they_were_and_as_they_are():
    files = {**ENVIRONMENT.files, "documents/notes/long.txt": "Zoë\r\n".encode()}
    before = State(files)
    after = State({**files, "documents/rules.yaml": b"none"})
    source = """
def seen(initial, final):
    name = initial.db.execute("SELECT name FROM authors WHERE fold(name) = 'zoe angstrom'").fetchone()["name"]
    return name, initial.documents["notes/long.txt"], final.documents["rules.yaml"], len(initial.documents)
"""
    assert seen(source, before, after) == repr(("Zoë Ångström", "Zoë\r\n", "none", 2))


def test_a_verifier_sees_the_json_object_that_a_state_is():
    before = json_state({"state.json": b'{"things": {"a": 1}}'})
    after = JsonState(before.snapshot, {("things", "b"): "2"})
    source = """
def seen(initial, final):
    initial.value["things"]["a"] = 5  # its own copy
    return initial.value, final.value, hasattr(final, "db")
"""
    assert seen(source, before, after) == repr(({"things": {"a": 5}}, {"things": {"a": 1, "b": 2}}, False))


def test_a_verifier_reaches_no_other_session_by_what_it_is_shown(lent):
    vandal = """
import os
def seen(initial, final):
    done = []
    for fd in range(3, 32):
        for way in (lambda: os.pwrite(fd, b"evil", 0), lambda: os.ftruncate(fd, 0)):
            try:
                way()
                done.append(fd)
            except OSError:
                pass
    return done
"""
    assert seen(vandal, START, lent) == "[]"
    assert judged(PROGRAM, PROGRAM.answer).status == "pass"
    assert judged(replace(PROGRAM, rubric=()), PROGRAM.answer, lent).failed == ("unasked change",)


def test_states_that_are_kept_hold_no_descriptors(lent):
    before = len(os.listdir("/proc/self/fd"))
    kept = [State.of(lent.snapshot, lent.changes) for _ in range(5)]
    task = replace(PROGRAM, rubric=())
    assert {judged(task, PROGRAM.answer, state).status for state in kept} == {"fail"}
    assert len(os.listdir("/proc/self/fd")) <= before + 2  # of the snapshot that all share


def test_a_verifier_may_be_written_with_dataclasses():
    source = """
from __future__ import annotations
from dataclasses import dataclass
@dataclass
class Row:
    key: str
def seen(initial, final):
    return Row(key="x")
"""
    assert seen(source, START, START) == "Row(key='x')"


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
