from dataclasses import replace

import pytest

from agent_world.identity import VersionId
from agent_world.rollouts.episode import PinMismatchError
from agent_world.rollouts.loop import EpisodeSpec, replay, roll_out
from agent_world.rollouts.model import Tokens
from agent_world.rollouts.policies import Scripted, answer_step, tool_step
from agent_world.rollouts.pruning import demonstrate
from agent_world.tasks.model import Criterion
from tests.models.little import call
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING, field, schema

NOT_FOUND = call("get_book", book_id="B99")
NO_MEMBER = call("find_member", name="Nobody At All")
EMPTY = call("search_books", title="No Such Title")
UNKNOWN = call("no_such_tool")
INVALID = call("get_book", book=3)
ASIDE = call("get_book", book_id="B1")
PAPERS = call("count_books_by_genre", genre="essay")
IN_VAIN = (NOT_FOUND, NO_MEMBER, EMPTY, UNKNOWN, INVALID)

AUTHOR = replace(
    READING,
    instruction="Who wrote Winter Maps?",
    answer={"author": "Bo Lindqvist"},
    answer_schema=schema(author=field("string")),
    rubric=(READING.rubric[0], READING.rubric[-1]),
)


class Steps(Scripted):
    """Takes given steps, then answers."""

    name, version = "steps", "1"

    def __init__(self, steps, answer):
        super().__init__()
        self.steps, self.answer = steps, answer

    def play(self, turn):
        yield from (step for step in self.steps)
        yield answer_step(self.answer)


def attempt(task, steps, answer=None, **spec):
    policy = Steps(steps, task.answer if answer is None else answer)
    [trajectory] = roll_out([EpisodeSpec(task=task, environment=ENVIRONMENT, **spec)], policy)
    return trajectory


def plan(task):
    return [tool_step(each) for each in task.plan]


def shown(task, *attempts):
    return demonstrate(attempts, task, ENVIRONMENT)


def calls(trajectory):
    return [(step.tool, dict(step.arguments)) for step in trajectory.calls]


@pytest.mark.parametrize(
    ("task", "detour"),
    [(task, detour) for task in (READING, WRITING) for detour in IN_VAIN]
    + [(task, detour) for task in (AUTHOR, WRITING) for detour in (ASIDE, PAPERS)],
)
def test_a_demonstration_passes_and_has_no_detour_wherever_it_was_taken(task, detour):
    gold = plan(task)
    for place in range(len(gold) + 1):
        tried = attempt(task, [*gold[:place], detour, *gold[place:]])
        made = shown(task, tried)
        assert made.outcome.status == "pass"
        assert calls(made) == calls(attempt(task, gold))
        assert made.final_digest == tried.final_digest
        assert made.steps[-1][0].answer == task.answer


@pytest.mark.parametrize("task", [READING, WRITING], ids=lambda task: task.task_id)
def test_a_call_that_was_made_before_is_left_out(task):
    twice = [step for step in plan(task) for _ in range(1 if step.tool == "lend_book" else 2)]
    assert calls(shown(task, attempt(task, twice))) == calls(attempt(task, plan(task)))


def test_a_demonstration_is_an_episode_that_replays_and_says_whose_it_is():
    tried = attempt(READING, [EMPTY, *plan(READING)], sample=3, seed=9, task_version=VersionId("toy-read@7"))
    made = shown(READING, tried)
    assert replay(made, READING, ENVIRONMENT).holds
    assert (made.sample, made.seed, made.task, made.policy) == (3, 9, "toy-read@7", "steps, without detours")


def test_the_shortest_of_several_attempts_is_shown():
    title = call("search_books", title="Winter")
    longer = attempt(READING, [title, call("search_books", title="Maps"), *plan(READING)])
    shorter = attempt(READING, plan(READING))
    assert calls(shown(READING, longer, shorter)) == calls(shown(READING, shorter, longer)) == calls(shorter)


def test_nothing_is_shown_when_nothing_passed():
    wrong = attempt(READING, plan(READING), {"author": "Ana Ruiz", "copies": 1})
    idle = attempt(WRITING, plan(WRITING)[:2])
    assert wrong.outcome.status == idle.outcome.status == "fail"
    assert shown(READING) is None
    assert shown(READING, wrong) is None
    assert shown(WRITING, idle) is None


def test_an_attempt_that_the_harness_spoilt_is_passed_over():
    good = attempt(READING, plan(READING))
    spoilt = replace(good, outcome=replace(good.outcome, status="infra_error"))
    assert shown(READING, spoilt) is None
    assert shown(READING, spoilt, good) is not None


def test_a_claim_of_having_passed_is_proven_by_running_it_again():
    wrong = attempt(READING, plan(READING), {"author": "Ana Ruiz", "copies": 1})
    claimed = replace(wrong, outcome=replace(wrong.outcome, status="pass", failed=()))
    assert shown(READING, claimed) is None
    elsewhere = replace(attempt(READING, plan(READING)), final_digest="0" * 64)
    assert shown(READING, elsewhere) is None


def test_another_version_of_the_environment_is_refused():
    with pytest.raises(PinMismatchError):
        demonstrate(
            [attempt(READING, plan(READING))], READING, replace(ENVIRONMENT, version=VersionId("toy-library@1"))
        )


LEND_OUT = call("lend_book", book_id="B2", member_id="M2")
LEND = call("lend_book", book_id="B5", member_id="M2")
INSTEAD = replace(
    WRITING,
    instruction="Lend Salt and Stone to Tom Okafor; if no copy of it is left, lend Nordic Light instead. "
    "What is the state of the loan?",
)


def test_a_refusal_that_decides_is_kept():
    steps = [
        call("search_books", title="Salt and Stone"), call("find_member", name="Tom Okafor"), LEND_OUT,
        call("search_books", title="Nordic Light"), LEND,
    ]  # fmt: skip
    tried = attempt(INSTEAD, [*steps[:2], NOT_FOUND, *steps[2:]])
    assert tried.steps[3][1].value["error"]["code"] == "no_copies"
    assert calls(shown(INSTEAD, tried)) == calls(attempt(INSTEAD, steps))


def test_a_refused_write_that_was_made_again_after_a_write_is_kept_both_times():
    """What is refused before a write may be allowed after it, and the other way about."""
    one_left = replace(INSTEAD, answer={"status": "returned"}, state_diff={}, rubric=(
        Criterion(name="status", kind="field_equals", field="status", expected="returned"),
        Criterion(name="state", kind="field_present", field="status"),
    ))  # fmt: skip

    class Lender(Steps):
        def play(self, turn):
            yield call("find_member", name="Tom Okafor")
            lent = yield call("lend_book", book_id="B3", member_id="M2")
            yield call("lend_book", book_id="B3", member_id="M2")
            yield call("return_book", loan_id=lent.value["loan_id"])
            yield answer_step(self.answer)

    [tried] = roll_out([EpisodeSpec(task=one_left, environment=ENVIRONMENT)], Lender((), one_left.answer))
    assert tried.outcome.status == "pass"
    assert tried.steps[2][1].status == "refused"
    assert calls(shown(one_left, tried)) == calls(tried)


def counting(answer, instruction):
    return replace(
        READING,
        instruction=instruction,
        answer=answer,
        answer_schema=schema(**{name: field("integer") for name in answer}),
        rubric=(
            *(Criterion(name=name, kind="field_equals", field=name, expected=value) for name, value in answer.items()),
            READING.rubric[-1],
        ),
    )


def test_of_what_was_worked_out_every_reading_is_kept_and_what_failed_is_not():
    task = counting({"copies": 4}, "How many copies of The Quiet Harbour and Winter Maps are there together?")
    steps = [call("get_book", book_id="B1"), call("get_book", book_id="B3")]
    tried = attempt(task, [steps[0], NOT_FOUND, EMPTY, steps[0], steps[1]])
    assert calls(shown(task, tried)) == calls(attempt(task, steps))


def test_a_search_that_found_nothing_is_kept_where_none_is_the_answer():
    task = counting({"books": 0}, "How many books have Zeppelin in their title?")
    tried = attempt(task, [NOT_FOUND, call("search_books", title="Zeppelin")])
    assert calls(shown(task, tried)) == [("search_books", {"title": "Zeppelin"})]


def test_an_id_inside_a_longer_word_of_the_instruction_was_not_read_there():
    task = replace(AUTHOR, instruction="On card AB3X: who wrote Winter Maps?")
    assert calls(shown(task, attempt(task, plan(task)))) == calls(attempt(task, plan(task)))


def test_an_id_that_the_instruction_says_needs_no_search():
    task = replace(AUTHOR, instruction="Who wrote the book B3?")
    assert calls(shown(task, attempt(task, plan(task)))) == [("get_book", {"book_id": "B3"})]


def test_ids_that_a_policy_wrote_do_not_go_into_another_context():
    tokens = Tokens(ids=(300, 301), logprobs=(-1.0, -1.0))
    tried = attempt(READING, [replace(step, tokens=tokens) for step in [ASIDE, *plan(READING)]])
    assert all(step.tokens is None for step, _ in shown(READING, tried).steps)


def test_a_program_task_is_shown_with_its_readings():
    steps = [call("search_books", title="e"), *plan(PROGRAM)]
    made = shown(PROGRAM, attempt(PROGRAM, [EMPTY, *steps]))
    assert made.outcome.status == "pass"
    assert set(c.arguments["book_id"] for c in PROGRAM.plan) <= {c[1].get("book_id") for c in calls(made)}
    assert ("search_books", dict(EMPTY.arguments)) not in calls(made)
