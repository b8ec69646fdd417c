import math
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from agent_world import world
from agent_world.environments.model import Call
from agent_world.rollouts.episode import Episode, EpisodeOverError
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.model import Step
from agent_world.rollouts.policies import Gold, Null, Wrong
from agent_world.serving.door import Door
from agent_world.serving.episodes.client import EpisodeClient, EpisodeServerError, RequestRefusedError, play
from agent_world.serving.episodes.messages import EpisodeRequest
from agent_world.serving.tasks import GivenTasks, LakeTasks
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING
from tests.serving.episodes.server import DEADLINE_S, LEND, FaultyWire, Http, Server, bound, serving, together
from tests.toy_lake import save_toy

ALL = [READING, WRITING, PROGRAM]


@pytest.fixture
def client(server) -> Iterator[EpisodeClient]:
    with EpisodeClient(server.url) as opened:
        yield opened


def impatient(url: str) -> EpisodeClient:
    return EpisodeClient(url, patience_s=0.2)


def perform(episode, calls, answer):
    """What was seen in an episode, and how it ended."""
    seen = [episode.call(call.tool, call.arguments) for call in calls]
    return [*seen, episode.reply("Anything else?"), episode.answer(answer).status, episode.outcome.reward]


STRAY = (
    Call(tool="get_book", arguments={"book_id": "ZZ"}),
    Call(tool="get_book", arguments={"book": "ZZ"}),
    Call(tool="nothing", arguments={}),
    Call(tool="count_books_by_genre", arguments={}),
)


@pytest.mark.parametrize("answer", ["gold", "wrong"])
@pytest.mark.parametrize("task", ALL, ids=lambda task: task.task_id)
def test_a_remote_episode_is_as_one_in_process(client, task, answer):
    calls, given = (*STRAY, *task.plan), task.answer if answer == "gold" else [task.answer]
    with client.episode(task.task_id, seed=7) as remote, Episode(task, ENVIRONMENT, seed=7) as local:
        assert (remote.instruction, remote.tools, remote.answer_schema) == (
            local.instruction, local.tools, local.answer_schema,
        )  # fmt: skip
        assert perform(remote, calls, given) == perform(local, calls, given)
        assert remote.steps == local.steps
        assert replace(remote.turn(), episode="") == replace(local.turn(), episode="")
        assert remote.over
        with pytest.raises(EpisodeOverError):
            remote.call("get_book", {"book_id": "B3"})


@pytest.mark.parametrize("step", [
    Step(kind="malformed", text="I do not know."),
    Step(kind="tool", tool=None),
    Step(kind="tool", tool="get_book", arguments={"book_id": math.nan}),
    Step(kind="tool", tool="get_book", arguments={"book_id": {1, 2}}),
    Step(kind="tool", tool="search_books", arguments={"title": "x" * 70_000}),
    Step(kind="answer", answer="x" * 70_000),
])  # fmt: skip
def test_what_is_no_step_is_recorded_as_malformed_and_the_episode_goes_on(client, step):
    with client.episode("toy-read") as remote, Episode(READING, ENVIRONMENT, seed=0) as local:
        assert remote.take(step) == local.take(step)
        assert remote.steps == local.steps
        assert remote.call("get_book", {"book_id": "B3"}).status == "ok"
        assert remote.answer(READING.answer).status == "pass"


def test_an_answer_that_is_none_fails(client):
    with client.episode("toy-read") as remote, Episode(READING, ENVIRONMENT, seed=0) as local:
        assert remote.answer(math.inf).status == local.answer(math.inf).status == "fail"


def test_leaving_without_an_answer_fails_and_frees_the_episode(server, client):
    before = server.places.taken
    with client.episode("toy-read") as remote:
        assert server.places.taken == before + 1
    assert (remote.outcome.status, remote.outcome.reward) == ("fail", 0.0)
    assert server.places.taken == before


def test_a_group_has_a_seed_for_each_sample(client):
    group = client.group("toy-read", 3, seed=7)
    assert [(each.seed, each.sample) for each in group] == [(7, 0), (8, 1), (9, 2)]
    assert len({each.name for each in group}) == 3
    for each in group:
        each.close()


def test_tasks_are_listed_over_all_pages():
    many = [bound(replace(READING, task_id=f"toy-{number:04}")) for number in range(1100)]
    with serving(GivenTasks([*many, bound(WRITING)])) as server, EpisodeClient(server.url) as client:
        listed = list(client.tasks(environment="toy-library", purpose="general"))
        assert [entry.task for entry in listed] == sorted(task.version for task in [*many, bound(WRITING)])
        assert listed[0].instruction == READING.instruction
        assert list(client.tasks(tier="hard")) == []


def lose_first(what):
    """Every request is lost in this way when it comes for the first time."""
    return lambda times: what if times == 1 else None


@pytest.mark.parametrize("what", ["lose the request", "lose the reply"])
@pytest.mark.parametrize("task", [WRITING, PROGRAM], ids=lambda task: task.task_id)
def test_nothing_acts_twice_when_every_request_or_reply_is_lost_once(server, task, what):
    before = server.places.taken
    with FaultyWire(server, lose_first(what)) as wire, EpisodeClient(wire.url) as client:
        with client.episode(task.task_id) as remote, Episode(task, ENVIRONMENT, seed=0) as local:
            assert server.places.taken == before + 1, "the lost creation left no second one"
            assert perform(remote, task.plan, task.answer) == perform(local, task.plan, task.answer)
            assert remote.outcome.status == "pass", "a second loan would have failed"
        with client.episode(task.task_id) as abandoned:
            pass
        assert abandoned.outcome.status == "fail"
    assert set(wire.seen.values()) == {2}, "every request was lost once and came again as it was"
    assert len(wire.seen) == 1 + len(task.plan) + 2 + 2
    assert server.places.taken == before


def test_the_second_reply_may_be_lost_as_well(server):
    with FaultyWire(server, lambda times: "lose the reply" if times < 4 else None) as wire:
        with EpisodeClient(wire.url) as client, client.episode("toy-write") as remote:
            assert remote.call("lend_book", LEND).status == "ok"
            assert remote.answer({"status": "out"}).status == "pass"
    assert set(wire.seen.values()) == {4}


def test_a_server_that_goes_away_is_an_infra_error_and_raises_nothing():
    with serving() as server, impatient(server.url) as client:
        group = client.group("toy-read", 4)
        server.stop()
        called, answered, given_up, closed = group
        seen = called.call("get_book", {"book_id": "B3"})
        assert (seen.status, seen.value["error"]["code"]) == ("error", "harness")
        assert called.outcome.status == "infra_error"
        assert called.outcome.reward is None
        assert answered.answer(READING.answer).status == "infra_error"
        assert given_up.give_up("enough").status == "infra_error"
        with closed:
            pass
        assert closed.outcome.status == "infra_error"
        with pytest.raises(EpisodeServerError, match="ConnectError"):
            client.episode("toy-read")


def test_a_server_that_comes_back_without_the_episode_is_an_infra_error(client):
    remote = client.episode("toy-read")
    with Http(Server(client.url, None, None)) as other:
        other.send("DELETE", f"/v1/episodes/{remote.name}")
    seen = remote.call("get_book", {"book_id": "B3"})
    assert seen.value["error"]["code"] == "harness"
    assert (remote.outcome.status, remote.outcome.reward) == ("infra_error", None)
    assert "episode_closed" in remote.outcome.detail


def test_a_full_server_is_waited_for():
    with serving(sessions=2) as server, EpisodeClient(server.url) as client:
        started = threading.Barrier(6)

        def one(seed: int) -> str:
            started.wait(DEADLINE_S)
            with client.episode("toy-read", seed=seed) as episode:
                episode.call("get_book", {"book_id": "B3"})
                return episode.answer(READING.answer).status

        assert together(*[lambda seed=seed: one(seed) for seed in range(6)]) == ["pass"] * 6


def test_patience_ends():
    with serving(sessions=1) as server, impatient(server.url) as client, client.episode("toy-read"):
        with pytest.raises(EpisodeServerError, match=r"HTTP 503.*server_full"):
            client.episode("toy-read")


@pytest.mark.parametrize(
    ("requests", "code"),
    [
        ([EpisodeRequest(task="nothing")], "unknown_task"),
        ([EpisodeRequest(task="toy-read", samples=10_000)], "batch_too_large"),
        ([], "invalid_request"),
    ],
)
def test_a_request_that_cannot_be_granted_is_not_tried_again(client, requests, code):
    with pytest.raises(RequestRefusedError) as caught:
        client.episodes(requests)
    assert caught.value.code == code


def test_a_token_opens_the_door():
    with serving(door=Door(token="open, open, sesame")) as server:
        with EpisodeClient(server.url, token="open, open, sesame") as client, client.episode("toy-read") as episode:
            assert episode.answer(READING.answer).status == "pass"
        for token in (None, "sesame"):
            with EpisodeClient(server.url, token) as client, pytest.raises(RequestRefusedError) as caught:
                client.episode("toy-read")
            assert (caught.value.status, caught.value.code) == (401, "unauthorised")
            assert "sesame" not in str(caught.value)


class Elsewhere:
    """Something else that answers on the port."""

    def __init__(self, app) -> None:
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "http":
            await JSONResponse({"hello": "world"})(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def test_a_server_that_is_another_one_is_named():
    with serving(around=Elsewhere) as server, impatient(server.url) as client:
        with pytest.raises(EpisodeServerError, match="no reply of the episode API"):
            client.episode("toy-read")


def test_errors_survive_pickling():
    for error in (EpisodeServerError("http://x", "gone"), RequestRefusedError("http://x", 404, "unknown_task", "no")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("policy", [Gold(ALL), Null(ALL), Wrong(ALL, [ENVIRONMENT])], ids=["gold", "null", "wrong"])
def test_a_policy_plays_remote_episodes_as_it_plays_ours(client, policy):
    specs = [EpisodeSpec(task=task, environment=ENVIRONMENT, seed=3) for task in ALL]
    ours = [trajectory.outcome.status for trajectory in roll_out(specs, policy)]
    episodes = client.episodes([EpisodeRequest(task=task.task_id, seed=3) for task in ALL])
    assert [outcome.status for outcome in play(episodes, policy)] == ours


class Dawdler:
    """Never comes to an answer."""

    name = version = "dawdler"

    def act(self, turns):
        return [Step(kind="tool", tool="get_book", arguments={"book_id": "B3"}) for _ in turns]

    def forget(self, episodes):
        pass


def test_a_policy_without_an_answer_fails_after_its_last_step(client):
    episodes = client.group("toy-read", 3)
    assert [outcome.reward for outcome in play(episodes, Dawdler(), max_steps=4)] == [0.0] * 3
    assert [len(episode.steps) for episode in episodes] == [4] * 3


def test_the_example_of_the_docs_runs(tmp_path, capsys):
    docs = (Path(__file__).parents[3] / "docs" / "environments.md").read_text("utf-8")
    section = docs.partition("\n## Plug the HTTP API into a trainer\n")[2]
    example = section.partition("```python\n")[2].partition("```")[0]
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("toy", derivation="d0") as batch:
        environment, _ = save_toy(batch, ENVIRONMENT)
        task = world.save_task(batch, replace(READING, environments=(environment,)))
        batch.observe(task, {"accepted": True, "tier": "train"})
    with serving(LakeTasks(lake)) as server:
        assert "http://127.0.0.1:8765" in example
        exec(example.replace("http://127.0.0.1:8765", server.url), {"__name__": "example"})
    assert capsys.readouterr().out == f"{task} {[0.0] * 8}\n"
