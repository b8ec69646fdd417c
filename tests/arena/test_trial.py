from __future__ import annotations

from dataclasses import replace

import pytest

from agent_world.arena.trial import Trial, draw_environments, hold
from agent_world.rollouts.faults import FAULTS
from agent_world.rollouts.loop import version_of
from agent_world.world import BoundTask
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING

KEYS = [f"e{number:02d}" for number in range(14)]
TASKS = [
    replace(task, task_id=f"{task.task_id}-{number}", instruction=f"{task.instruction} ({number})")
    for task in (READING, WRITING, PROGRAM)
    for number in range(4)
]
BOUND = tuple(BoundTask(version=version_of(task), task=task, environment=ENVIRONMENT) for task in TASKS)


def finding_of(fault, struck):
    return hold(Trial(fault=fault, struck=struck, tasks=BOUND, seed=7))


@pytest.mark.parametrize("fault", ["wrong_tool", "wrong_argument", "loop", "bad_format", "wrong_answer"])
def test_a_planted_fault_is_found_where_it_strikes(fault):
    finding = finding_of(fault, (ENVIRONMENT.environment_id,))
    assert finding.found == finding.planted == {ENVIRONMENT.environment_id: fault}
    assert (finding.score.label_precision, finding.score.label_recall) == (1.0, 1.0)
    assert finding.episodes == len(BOUND)


def test_nothing_is_found_in_a_healthy_policy():
    finding = finding_of("healthy", ())
    assert finding.found == finding.planted == {}


def test_a_fault_is_planted_in_few_environments_and_in_none_of_the_healthy_policy():
    for fault in FAULTS:
        played, struck = draw_environments(fault, KEYS, seed=7)
        assert set(struck) < set(played) <= set(KEYS)
        assert bool(struck) == (fault != "healthy")
        assert draw_environments(fault, KEYS[::-1], seed=7) == (played, struck)
    assert draw_environments("loop", ["only"], seed=7) == (["only"], ["only"])
