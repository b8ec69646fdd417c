import random
from dataclasses import replace

import pytest

from agent_world.tasks.difficulty import Aim, Measured, fit
from tests.toy import toy_tasks

READ = toy_tasks()[0]


def measured(calls: int, passes: int) -> Measured:
    return Measured(knobs=replace(READ.knobs, calls=calls), passes=passes, runs=8)


@pytest.fixture(scope="module")
def difficulty():
    return fit("tiny", [measured(calls, 8 - calls) for calls in range(1, 8) for _ in range(5)])


def test_longer_plans_that_fail_more_are_predicted_to_fail_more(difficulty):
    rates = [difficulty.pass_rate(replace(READ.knobs, calls=calls)) for calls in range(1, 8)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 0.7
    assert rates[-1] < 0.3


def test_a_knob_that_never_varied_has_no_weight(difficulty):
    assert abs(difficulty.weights["writes"]) < 1e-6


def test_the_fit_does_not_depend_on_order():
    cases = [measured(calls, 8 - calls) for calls in range(1, 8)]
    one, other = fit("tiny", cases), fit("tiny", cases[::-1])
    assert one.bias == pytest.approx(other.bias)


def test_nothing_measured_is_an_error():
    with pytest.raises(ValueError, match="at least one measured run"):
        fit("tiny", [])


def test_an_aim_keeps_tasks_near_the_rate(difficulty):
    aim, rng = Aim(difficulty=difficulty, rate=0.5, spread=0.1), random.Random(0)
    near, far = (replace(READ, knobs=replace(READ.knobs, calls=calls)) for calls in (4, 7))
    kept = [sum(aim.wants(task, rng) for _ in range(200)) for task in (near, far)]
    assert kept[0] > 150
    assert kept[1] < 60
