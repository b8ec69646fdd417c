import pytest

from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.policies import Gold
from agent_world.rollouts.randoms import RandomAgent
from agent_world.rollouts.reuse import SharedSessions
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING


def specs(task, count=12):
    return [EpisodeSpec(task=task, environment=ENVIRONMENT, sample=k, seed=k) for k in range(count)]


@pytest.mark.parametrize("task", [READING, WRITING, PROGRAM], ids=lambda task: task.task_id)
@pytest.mark.parametrize("informed", [True, False])
def test_guessing_in_shared_sessions_gives_the_same_trajectories(task, informed):
    agent = RandomAgent(informed=informed)
    with SharedSessions() as sessions:
        shared = roll_out(specs(task), agent, live=1, open_session=sessions)
        assert sessions.opened < 12
    assert shared == roll_out(specs(task), agent)


def test_episodes_that_change_nothing_share_one_session():
    with SharedSessions() as sessions:
        roll_out(specs(READING), Gold([READING]), live=1, open_session=sessions)
        assert sessions.opened == 1


def test_an_episode_that_changes_something_keeps_its_session_to_itself():
    with SharedSessions() as sessions:
        trajectories = roll_out(specs(WRITING, 3), Gold([WRITING]), live=1, open_session=sessions)
        assert sessions.opened == 3
    assert {trajectory.outcome.status for trajectory in trajectories} == {"pass"}
