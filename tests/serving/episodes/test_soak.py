"""A thousand episodes through the API at once: none lost, none mixed up."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from agent_world.environments.model import Call, Json
from agent_world.rollouts.episode import Episode
from agent_world.rollouts.model import Step
from agent_world.rollouts.policies import answer_step, tool_step
from agent_world.serving.episodes.client import EpisodeClient
from agent_world.serving.episodes.messages import EpisodeRequest
from agent_world.serving.tasks import GivenTasks
from agent_world.tasks.model import Task
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING
from tests.serving.episodes.server import LEND, bound, serving

EPISODES, BATCH, CLIENTS = 1000, 25, 8


@dataclass(frozen=True)
class Play:
    """A task of its own with a seed of its own (so that it mints ids of its own), and what is done in it."""

    task: Task
    steps: tuple[Step, ...]


def the_play(number: int) -> Play:
    task = (WRITING, READING, WRITING, PROGRAM)[number % 4]
    right = number % 3 != 0
    answer: Json = task.answer if right else {**task.answer, next(iter(task.answer)): "wrong"}
    extra = [Call(tool="lend_book", arguments={**LEND, "member_id": "M1"})] if number % 5 == 0 else []
    return Play(
        replace(task, task_id=f"{task.task_id}-{number:04}", seed=1000 + number),
        (
            tool_step(Call(tool="get_book", arguments={"book_id": f"number {number}"})),  # comes back in the refusal
            *(tool_step(call) for call in (*task.plan, *extra)),
            answer_step(answer),
        ),
    )


def ended(episode) -> tuple[list, str]:
    return episode.steps, episode.outcome.status


def in_process(play: Play, seed: int) -> tuple[list, str]:
    with Episode(play.task, ENVIRONMENT, seed=seed) as episode:
        for step in play.steps[:-1]:
            episode.take(step)
        episode.answer(play.steps[-1].answer)
        return ended(episode)


def over_http(client: EpisodeClient, plays: dict[int, Play]) -> dict[int, tuple[list, str]]:
    """All of them live at once, one step of each after the other."""
    requests = [EpisodeRequest(task=play.task.task_id, seed=seed) for seed, play in plays.items()]
    episodes = dict(zip(plays, client.episodes(requests), strict=True))
    for place in range(max(len(play.steps) for play in plays.values())):
        for seed, play in plays.items():
            if place < len(play.steps):
                episodes[seed].take(play.steps[place])
    assert [episode.seed for episode in episodes.values()] == list(plays)
    return {seed: ended(episode) for seed, episode in episodes.items()}


@pytest.mark.timeout(900)  # seconds on a quiet machine, minutes on a busy one
def test_a_thousand_episodes_end_as_in_process_and_none_is_lost_or_mixed_up():
    plays = {number: the_play(number) for number in range(EPISODES)}
    batches = [{n: plays[n] for n in range(start, EPISODES, EPISODES // BATCH)} for start in range(EPISODES // BATCH)]
    with (
        serving(GivenTasks([bound(play.task) for play in plays.values()])) as server,
        EpisodeClient(server.url) as client,
        ThreadPoolExecutor(CLIENTS) as threads,
    ):
        found = {}
        for batch in threads.map(lambda batch: over_http(client, batch), batches):
            found |= batch
        assert server.places.taken == 0
    assert sorted(found) == list(plays)
    assert len({str(steps) for steps, _ in found.values()}) == EPISODES, "no two are alike, so a mix-up would show"
    with ThreadPoolExecutor(CLIENTS) as threads:
        expected = dict(zip(plays, threads.map(in_process, plays.values(), plays), strict=True))
    assert [number for number in plays if found[number] != expected[number]] == []
    statuses = [status for _, status in found.values()]
    assert 300 < statuses.count("pass") < 700
    assert statuses.count("pass") + statuses.count("fail") == EPISODES
