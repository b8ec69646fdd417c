from __future__ import annotations

from dataclasses import replace

import pytest

from agent_world.arena.labels import label_failure
from agent_world.environments.model import Call
from agent_world.identity import Digest, VersionId
from agent_world.rollouts.model import Observation, Outcome, Step, Trajectory
from tests.toy import toy_tasks

READ, WRITE = toy_tasks()
OK = Observation(status="ok", value={})


def episode(calls, answer=None, *, failed=("copies",), status="fail", malformed=False, task=WRITE):
    """A trajectory that makes `calls` and then gives `answer` (None: never answers)."""
    steps = [(Step(kind="tool", tool=call.tool, arguments=call.arguments), OK) for call in calls]
    if malformed:
        steps.append((Step(kind="malformed", text="<c>lend("), None))
    if answer is not None:
        steps.append((Step(kind="answer", answer=answer), None))
    return Trajectory(
        trajectory_id="t",
        task=VersionId("x@0"),
        environment=task.environments[0],
        policy="p",
        policy_version="p@0",
        sample=0,
        seed=0,
        steps=tuple(steps),
        outcome=Outcome(status=status, failed=failed),
        final_digest=Digest("0" * 64),
    )


SEARCH, MEMBER, LEND = WRITE.plan
WRONG_BOOK = Call(tool="lend_book", arguments={"book_id": "B1", "member_id": "M2"})
OTHER = Call(tool="count_books_by_genre", arguments={"genre": "novel"})


@pytest.mark.parametrize(
    ("label", "trajectory"),
    [
        ("infra", episode([SEARCH], status="infra_error")),
        ("bad_format", episode([SEARCH], malformed=True)),
        ("bad_format", episode(WRITE.plan, {"state": "out"})),
        ("loop", episode([SEARCH, SEARCH, SEARCH], {"status": "out"})),
        ("loop", episode([SEARCH, MEMBER])),
        ("wrong_tool", episode([SEARCH, MEMBER, OTHER], {"status": "out"})),
        ("wrong_argument", episode([SEARCH, MEMBER, WRONG_BOOK], {"status": "out"})),
        ("early_stop", episode([SEARCH], {"status": "out"})),
        ("missing_step", episode([SEARCH, LEND], {"status": "out"})),
        ("wrong_final_state", episode([*WRITE.plan, WRONG_BOOK], {"status": "out"}, failed=("state",))),
        ("wrong_answer", episode(WRITE.plan, {"status": "lost"}, failed=("status",))),
    ],
)
def test_each_kind_of_failure_gets_its_label(label, trajectory):
    assert label_failure(trajectory, WRITE).label == label


def test_a_passed_episode_has_no_failure_whatever_way_it_took():
    assert label_failure(episode([OTHER], {"status": "out"}, status="pass", failed=()), WRITE) is None


def test_a_failure_names_the_first_planned_call_that_was_missed_and_the_one_before_it():
    failure = label_failure(episode([SEARCH, MEMBER, WRONG_BOOK], {"status": "out"}), WRITE)
    assert (failure.missed, failure.after) == ("lend_book", "find_member")


def test_the_order_of_independent_calls_is_no_failure():
    swapped = episode([MEMBER, SEARCH, LEND], {"status": "lost"}, failed=("status",))
    assert label_failure(swapped, WRITE).label == "wrong_answer"


def test_a_repeated_planned_call_must_be_made_as_often_as_planned():
    twice = replace(WRITE, plan=(SEARCH, SEARCH, MEMBER, LEND))
    assert label_failure(episode([SEARCH, MEMBER, LEND], {"status": "out"}), twice).label == "missing_step"
