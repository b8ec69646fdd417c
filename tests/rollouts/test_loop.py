import json
from dataclasses import replace

import pytest

from agent_world import world
from agent_world.codec import decode, encode
from agent_world.identity import content_hash
from agent_world.rollouts.cutting import CUT
from agent_world.rollouts.loop import EpisodeSpec, replay, roll_out, version_of
from agent_world.rollouts.model import Step, Trajectory
from agent_world.rollouts.policies import Gold, Null, Scripted, UnknownEpisodeError, Wrong, answer_step
from agent_world.rollouts.randoms import RandomAgent
from agent_world.rollouts.users import NOTHING_TO_ADD, ScriptedUser
from agent_world.tasks.model import Task, Wish
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING
from tests.toy_lake import save_toy

TASKS = (READING, WRITING, PROGRAM)


def specs(*tasks, samples=1):
    samples_of = [(task, sample) for task in tasks for sample in range(samples)]
    return [EpisodeSpec(task=task, environment=ENVIRONMENT, sample=k, seed=100 + k) for task, k in samples_of]


def statuses(trajectories):
    return [trajectory.outcome.status for trajectory in trajectories]


def test_many_episodes_of_many_tasks_run_against_one_policy():
    trajectories = roll_out(specs(*TASKS, samples=4), Gold(TASKS), live=5)
    assert statuses(trajectories) == ["pass"] * 12
    assert [trajectory.sample for trajectory in trajectories] == [0, 1, 2, 3] * 3
    assert [trajectory.task for trajectory in trajectories[::4]] == [version_of(task) for task in TASKS]
    assert len({trajectory.trajectory_id for trajectory in trajectories}) == 12


@pytest.mark.parametrize("live", [1, 7])
def test_how_many_are_live_changes_nothing(live):
    agent = RandomAgent(informed=True)
    assert roll_out(specs(*TASKS, samples=3), agent, live=live) == roll_out(specs(*TASKS, samples=3), agent, live=64)


def test_a_trajectory_survives_json_and_replays_to_the_same_digest():
    for trajectory, task in zip(roll_out(specs(*TASKS), Gold(TASKS)), TASKS, strict=True):
        stored = decode(Trajectory, encode(trajectory))
        again = replay(stored, task, ENVIRONMENT)
        assert again.holds
        assert again.digest == trajectory.final_digest


def test_a_replay_that_differs_says_where():
    [trajectory] = roll_out(specs(WRITING), Gold(TASKS))
    step, observation = trajectory.steps[1]
    steps = (trajectory.steps[0], (step, replace(observation, value={})), *trajectory.steps[2:])
    forged = replace(trajectory, steps=steps)
    assert replay(forged, WRITING, ENVIRONMENT).differs_at == 1
    shortened = replace(trajectory, steps=trajectory.steps[:2])
    assert not replay(shortened, WRITING, ENVIRONMENT).same_digest


LONG = """def get_book(world, *, book_id):
    return {"book_id": book_id, "pages": [f"page {number} " + "x" * 90 for number in range(1000)]}
"""


def with_long_books(source=LONG):
    tools = tuple(replace(tool, source=source) if tool.name == "get_book" else tool for tool in ENVIRONMENT.tools)
    return replace(ENVIRONMENT, tools=tools)


def test_what_was_cut_lies_whole_in_the_lake_and_is_replayed_whole(tmp_path):
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("environments", derivation="d") as batch:
        environment, _ = save_toy(batch, with_long_books())
        task = replace(READING, environments=(environment,))
        task_version = world.save_task(batch, task)
    bound = lake.task(task_version)
    [trajectory] = roll_out([EpisodeSpec(task=task, environment=bound.environment)], Gold([task]))
    with lake.begin("trajectories", derivation="d") as batch:
        trajectory = replace(trajectory, task=task_version)
        version = world.save_trajectory(batch, trajectory, purpose="solver", round=0)
    kept = lake.trajectory(version)
    assert kept == trajectory
    assert CUT in kept.steps[1][1].value
    assert len(kept.uncut[1]["pages"]) == 1000
    [path] = lake.files(version)
    assert json.loads(lake.files(version)[path]) == kept.uncut[1]
    assert replay(kept, task, bound.environment).holds
    # The part that was shown is the same; what was left out is not.
    other = replace(bound.environment, tools=with_long_books(LONG.replace("{number} ", "{number % 990} ")).tools)
    assert replay(kept, task, other).differs_at == 1


def test_what_has_no_long_observation_and_no_user_is_what_it_always_was():
    """Versions that earlier code gave: fields that came later leave them alone."""
    assert [version_of(task) for task in TASKS] == [
        "toy-read@7a51a5f3fc81661a04095a4415e38886",
        "toy-write@4450a6b22cbeeb696d0bf18d37e950b6",
        "toy-program@95738bd1be0655cacb6d5bbe038dd68c",
    ]
    records = [encode(trajectory) for trajectory in roll_out(specs(*TASKS), Gold(TASKS))]
    hashes = ["bc492c1c41fa7bd1", "d790afd07c1db8e2", "3bd83326756b51bb"]
    assert [content_hash("trajectory", record)[:16] for record in records] == hashes
    asked = replace(READING, user=(Wish(kind="fact", words=("name",), text="Lea."),))
    assert version_of(asked) != version_of(READING)
    assert decode(Task, encode(asked)) == asked
    assert decode(Task, encode(READING)) == READING


def test_each_episode_has_a_user_of_its_own():
    task = replace(READING, user=(Wish(kind="fact", words=("name",), text="Lea."),))

    class Asking(Scripted):
        name = "asking"

        def play(self, turn):
            yield Step(kind="reply", text="Your name?")
            yield Step(kind="reply", text="Your name?")
            yield answer_step({})

    heard = [[o.value for _, o in each.steps if o] for each in roll_out(specs(task, samples=2), Asking())]
    assert heard == [[{"user": "Lea."}, {"user": "As I said: Lea."}]] * 2
    told = roll_out(specs(task), Asking(), users=lambda task, seed: ScriptedUser())
    assert told[0].steps[0][1].value == {"user": NOTHING_TO_ADD}


class _Endless(Scripted):
    name = "endless"

    def play(self, turn):
        while True:
            yield Step(kind="tool", tool="get_book", arguments={"book_id": "B3"})


class _Babble(Scripted):
    name = "babble"

    def play(self, turn):
        while True:
            yield Step(kind="malformed", text="I would say...")


def test_an_episode_without_an_answer_ends_after_the_last_step():
    [trajectory] = roll_out(specs(READING), _Endless(), max_steps=6)
    assert len(trajectory.steps) == 6
    assert (trajectory.outcome.status, trajectory.outcome.failed) == ("fail", ("no_answer",))


class _Rounds(Scripted):
    """Goes round and round: a book, another one, the first again."""

    name = "rounds"

    def play(self, turn):
        while True:
            for book in ("B3", "B6"):
                yield Step(kind="tool", tool="get_book", arguments={"book_id": book})


class _Persistent(Scripted):
    """Lends the same book three times, each a loan of its own, and then answers."""

    name = "persistent"

    def play(self, turn):
        for _ in range(3):
            yield Step(kind="tool", tool=WRITING.plan[-1].tool, arguments=WRITING.plan[-1].arguments)
        yield answer_step(WRITING.answer)


@pytest.mark.parametrize(("policy", "steps"), [(_Endless(), 3), (_Rounds(), 5)])
def test_an_episode_that_goes_in_circles_ends_where_it_is_told_to(policy, steps):
    [trajectory] = roll_out(specs(READING), policy, max_steps=9, max_repeats=3)
    assert len(trajectory.steps) == steps
    assert (trajectory.outcome.status, trajectory.outcome.failed) == ("fail", ("no_answer",))
    assert "3 times" in trajectory.outcome.detail
    [free] = roll_out(specs(READING), policy, max_steps=9)
    assert len(free.steps) == 9


def test_a_step_that_brings_back_something_else_is_no_circle():
    [trajectory] = roll_out(specs(WRITING), _Persistent(), max_repeats=3)
    assert [step.kind for step, _ in trajectory.steps] == ["tool", "tool", "tool", "answer"]


def test_three_malformed_steps_end_an_episode():
    [trajectory] = roll_out(specs(READING), _Babble())
    assert [step.kind for step, _ in trajectory.steps] == ["malformed"] * 3
    assert trajectory.outcome.status == "fail"


class _BreaksOn(Scripted):
    """Raises for one task, whoever else is in the batch."""

    name = "breaks-on-one"

    def __init__(self, broken):
        super().__init__()
        self.broken, self.forgotten = broken, []

    def act(self, turns):
        if any(turn.instruction == self.broken.instruction for turn in turns):
            raise TimeoutError("no answer from the endpoint")
        return super().act(turns)

    def play(self, turn):
        yield answer_step(READING.answer)

    def forget(self, episodes):
        super().forget(episodes)
        self.forgotten += episodes


def test_a_policy_that_fails_for_one_episode_spares_its_neighbours():
    policy = _BreaksOn(WRITING)
    trajectories = roll_out(specs(READING, WRITING, PROGRAM), policy)
    assert statuses(trajectories) == ["pass", "infra_error", "fail"]
    assert "no answer from the endpoint" in trajectories[1].outcome.detail
    assert sorted(policy.forgotten) == sorted(trajectory.trajectory_id for trajectory in trajectories)


def test_the_same_episode_twice_gives_the_same_trajectory_twice():
    one, two = roll_out([*specs(WRITING), *specs(WRITING)], Gold(TASKS))
    assert one == two


def test_a_policy_that_gives_too_few_steps_is_a_fault_of_the_harness():
    class Short(_Babble):
        def act(self, turns):
            return []

    assert statuses(roll_out(specs(READING), Short())) == ["infra_error"]


def test_null_and_wrong_answer_policies_fail():
    for policy in (Null(TASKS), Null(TASKS, [ENVIRONMENT], form="likely"), Wrong(TASKS, [ENVIRONMENT])):
        assert set(statuses(roll_out(specs(*TASKS, samples=3), policy))) == {"fail"}, policy.name


def test_a_scripted_policy_names_the_task_it_does_not_know():
    with pytest.raises(UnknownEpisodeError, match="gold knows no task"):
        Gold([READING]).task_of(replace_turn())
    assert statuses(roll_out(specs(WRITING), Gold([READING]))) == ["infra_error"]


def replace_turn():
    from agent_world.rollouts.episode import Episode

    with Episode(WRITING, ENVIRONMENT, seed=0) as episode:
        return episode.turn()
