import pytest

from agent_world.rollouts.faults import FAULTS, Planted
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING

TASKS = (READING, WRITING, PROGRAM)
SICK = [fault for fault in FAULTS if fault != "healthy"]


def play(fault, tasks=TASKS, samples=3, **more):
    policy = Planted(tasks, [ENVIRONMENT], fault, **more)
    runs = [(task, sample) for task in tasks for sample in range(samples)]
    return roll_out([EpisodeSpec(task=task, environment=ENVIRONMENT, sample=k, seed=k) for task, k in runs], policy)


def calls(trajectory):
    return [(step.tool, dict(step.arguments)) for step in trajectory.calls]


def gold_calls(task):
    return [(call.tool, dict(call.arguments)) for call in task.plan]


def test_the_healthy_policy_passes():
    assert {trajectory.outcome.status for trajectory in play("healthy")} == {"pass"}


@pytest.mark.parametrize("fault", SICK)
def test_every_fault_fails_and_breaks_nothing(fault):
    assert {trajectory.outcome.status for trajectory in play(fault)} == {"fail"}


@pytest.mark.parametrize("fault", SICK)
def test_a_fault_may_be_kept_to_some_environments(fault):
    assert {trajectory.outcome.status for trajectory in play(fault, only={"elsewhere"})} == {"pass"}


def test_a_fault_may_strike_a_share_of_the_episodes():
    passed = sum(trajectory.outcome.status == "pass" for trajectory in play("wrong_answer", samples=40, rate=0.5))
    assert 30 <= passed <= 90


def test_a_fault_strikes_the_same_episodes_every_time():
    assert play("missing_step", rate=0.5) == play("missing_step", rate=0.5)


def test_wrong_tool_calls_another_tool_in_one_place():
    for trajectory in play("wrong_tool", (WRITING,)):
        differing = [(a[0], b[0]) for a, b in zip(calls(trajectory), gold_calls(WRITING), strict=True) if a != b]
        assert len(differing) == 1
        assert differing[0][0] != differing[0][1]


def test_wrong_argument_calls_the_right_tool_for_another_thing():
    for trajectory in play("wrong_argument", (WRITING,)):
        differing = [(a, b) for a, b in zip(calls(trajectory), gold_calls(WRITING), strict=True) if a != b]
        assert len(differing) == 1
        assert differing[0][0][0] == differing[0][1][0]


def test_a_missing_step_leaves_one_call_out():
    for trajectory in play("missing_step", (WRITING,)):
        made, gold = calls(trajectory), gold_calls(WRITING)
        assert len(made) == len(gold) - 1
        assert made[-1] == gold[-1]


def test_an_early_stop_answers_half_way():
    for trajectory in play("early_stop", (WRITING,)):
        assert calls(trajectory) == gold_calls(WRITING)[:1]


def test_a_loop_repeats_one_call_and_never_answers():
    for trajectory in play("loop", (WRITING,)):
        assert calls(trajectory)[-1] == calls(trajectory)[-2] == calls(trajectory)[-3]
        assert trajectory.outcome.failed == ("no_answer",)


def test_bad_format_does_everything_but_answer():
    for trajectory in play("bad_format", (WRITING,)):
        assert calls(trajectory) == gold_calls(WRITING)
        assert trajectory.steps[-1][0].kind == "malformed"


def test_a_wrong_final_state_comes_with_the_right_answer():
    for trajectory in play("wrong_final_state", (READING, WRITING)):
        assert trajectory.outcome.failed == ("state",)
