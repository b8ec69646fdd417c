import pytest

from agent_world.arena.evaluation import evaluate, paired_difference, pass_rate, task_rates
from agent_world.rollouts.model import Step
from agent_world.rollouts.policies import Gold
from agent_world.world import BoundTask
from tests.toy import toy_environment, toy_tasks


def rows(rates, samples=8, mode="sampled"):
    """Rows of tasks that pass `rate` of their samples."""
    return [
        {"task": f"t{task:03}", "mode": mode, "sample": s, "status": "pass" if s < rate * samples else "fail"}
        for task, rate in enumerate(rates)
        for s in range(samples)
    ]


@pytest.fixture(scope="module")
def bound():
    environment = toy_environment()
    return [BoundTask(version=f"{task.task_id}@0", task=task, environment=environment) for task in toy_tasks()]


class Flaky:
    """Answers rightly in even samples of the first task; breaks in the second."""

    name, version = "flaky", "7"

    def act(self, turns):
        return [self._step(turn) for turn in turns]

    def forget(self, episodes):
        pass

    def _step(self, turn):
        if "Lend" in turn.instruction:
            raise RuntimeError("out of order")
        right = {"author": "Bo Lindqvist", "copies": 1}
        return Step(kind="answer", answer=right if turn.seed % 2 == 0 else {"author": "Ana Ruiz", "copies": 1})


def test_gold_passes_every_task_and_every_sample_is_a_row(bound):
    samples = evaluate(Gold([b.task for b in bound]), bound, mode="sampled", samples=3)
    assert [(s.task, s.sample, s.status) for s in samples] == [(b.version, n, "pass") for b in bound for n in range(3)]
    row = samples[0].row(point="pi0", task_set="set@1", round=1)
    from lake_schemas.evaluations import TABLE

    assert set(row) == {column.name for column in TABLE.columns}


def test_what_the_harness_spoils_is_a_row_but_no_part_of_a_rate(bound):
    samples = evaluate(Flaky(), bound, mode="sampled", samples=12)
    table = [s.row(point="x", task_set="y", round=0) for s in samples]
    assert {row["status"] for row in table if row["task"] == "toy-write@0"} == {"infra_error"}
    assert set(task_rates(table)) == {"toy-read@0"}
    assert 0 < pass_rate(table).estimate < 1


def test_two_policies_meet_the_same_draws(bound):
    seeds = [[s.trajectory.seed for s in evaluate(Flaky(), bound, mode="sampled", samples=4, seed=3)] for _ in "ab"]
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 8


def test_an_interval_rests_on_tasks_not_on_samples():
    few, many = rows([0, 1] * 10, samples=4), rows([0, 1] * 10, samples=64)
    assert pass_rate(few)[:3] == pytest.approx(pass_rate(many)[:3])
    assert pass_rate(few).tasks == 20
    assert pass_rate(few).low == pytest.approx(0.28, abs=0.04)


def test_an_interval_covers_the_truth_about_as_often_as_it_says():
    import numpy as np

    source = np.random.default_rng(1)
    hits = 0
    for trial in range(200):
        interval = pass_rate(rows(source.binomial(8, 0.3, 60) / 8), seed=trial)
        hits += interval.low <= 0.3 <= interval.high
    assert 180 <= hits <= 200


def test_tasks_that_all_agree_leave_a_bound_on_those_that_were_not_drawn():
    none, all_ = pass_rate(rows([0] * 30)), pass_rate(rows([1] * 30))
    rest = 1 - 0.05 ** (1 / 30)  # of tasks that pass, the most with which 30 failures in a row are not yet surprising
    assert none == (0, 0, pytest.approx(rest), 30)
    assert all_ == (1, pytest.approx(1 - rest), 1, 30)
    same = paired_difference(rows([0.5] * 30), rows([0.5] * 30))
    assert same == (0, pytest.approx(-rest), pytest.approx(rest), 30)
    assert paired_difference(rows([1] * 30), rows([0] * 30)).excludes_zero


def test_pairing_sees_a_small_gain_that_two_separate_intervals_do_not():
    base = [task / 60 for task in range(60)]
    before, after = (
        rows([0.8 * rate for rate in base], samples=100),
        rows([0.8 * rate + 0.06 for rate in base], samples=100),
    )
    gain = paired_difference(after, before)
    assert gain.excludes_zero
    assert gain.estimate == pytest.approx(0.06, abs=0.005)
    assert pass_rate(before).high > pass_rate(after).low
    assert not paired_difference(before, before).excludes_zero


def test_only_tasks_with_both_outcomes_are_paired():
    before, after = rows([0.5, 0.5]), rows([1.0, 1.0, 1.0])
    assert paired_difference(after, before).tasks == 2
    assert paired_difference([], before) is None
    assert pass_rate([]) is None
