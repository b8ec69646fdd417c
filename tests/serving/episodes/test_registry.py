import json
import threading
import time
from dataclasses import dataclass, replace

import anyio
import psutil
import pytest
from anyio.to_thread import run_sync

from agent_world.environments import session as sessions
from agent_world.rollouts import episode as episodes
from agent_world.rollouts.episode import Episode
from agent_world.rollouts.model import Step
from agent_world.serving.episodes.client import EpisodeClient
from agent_world.serving.episodes.numbered import Wanted
from agent_world.serving.episodes.registry import EpisodeRegistry
from agent_world.serving.limits import Places, ServingLimits
from agent_world.serving.refusals import RefusedError
from agent_world.serving.tasks import GivenTasks
from agent_world.world import BoundTask
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING
from tests.serving.episodes.server import DEADLINE_S, LEND, Http, bound, refused, serving, together


def test_a_repeated_call_acts_once_and_gives_the_recorded_observation(http):
    id = http.open("toy-write")
    lent = http.call(id, 1, "lend_book", LEND)
    assert lent.json()["status"] == "ok"
    assert [http.call(id, 1, "lend_book", LEND).json() for _ in range(3)] == [lent.json()] * 3
    assert http.call(id, 2, "get_book", {"book_id": "B5"}).json()["status"] == "ok"
    assert http.call(id, 1, "lend_book", LEND).json() == lent.json(), "an earlier step can be asked for again"
    assert http.send("GET", f"/v1/episodes/{id}").json()["steps"] == 2
    assert http.answer(id, 3, {"status": "out"}).json()["status"] == "pass", "a second loan would fail"


def test_a_call_that_is_sent_many_times_at_once_acts_once(http):
    id = http.open("toy-write")
    seen = together(*[lambda: http.call(id, 1, "lend_book", LEND).json()] * 8)
    assert seen == [seen[0]] * 8
    assert http.answer(id, 2, {"status": "out"}).json()["status"] == "pass"


def test_a_number_stands_for_one_step(http):
    id = http.open("toy-write")
    http.call(id, 1, "lend_book", LEND)
    for path, body in [
        ("call", {"n": 1, "tool": "lend_book", "arguments": {**LEND, "member_id": "M1"}}),
        ("call", {"n": 1, "tool": "get_book", "arguments": LEND}),
        ("call", {"n": 3, "tool": "lend_book", "arguments": LEND}),
        ("reply", {"n": 1, "text": "lend_book"}),
        ("reply", {"n": 3, "text": "lend_book"}),
        ("answer", {"n": 1, "answer": {"status": "out"}}),
        ("answer", {"n": 3, "answer": {"status": "out"}}),
    ]:
        assert refused(http.send("POST", f"/v1/episodes/{id}/{path}", body)) == (409, "step_conflict")
    assert http.answer(id, 2, {"status": "out"}).json()["status"] == "pass", "nothing of that was done"


def test_an_answer_is_judged_once_however_often_it_is_sent(http, monkeypatch):
    judged = []
    judge = episodes.judge_all
    monkeypatch.setattr(episodes, "judge_all", lambda *a, **k: judged.append(1) or judge(*a, **k))
    id = http.open("toy-program")
    seen = together(*[lambda: http.answer(id, 1, PROGRAM.answer).json()] * 6)
    assert seen == [{"status": "pass", "reward": 1.0}] * 6
    assert http.answer(id, 1, PROGRAM.answer).json() == seen[0]
    assert refused(http.answer(id, 1, {"titles": [], "copies": 0})) == (409, "step_conflict")
    assert refused(http.answer(id, 2, PROGRAM.answer)) == (409, "episode_over")
    assert refused(http.call(id, 2, "get_book", {"book_id": "B3"})) == (409, "episode_over")
    assert judged == [1]


def test_a_batch_holds_every_sample_with_a_seed_of_its_own(http, server):
    before = server.places.taken
    batch = [{"task": "toy-read", "seed": 7, "samples": 3}, {"task": bound(WRITING).version}]
    shown = http.send("POST", "/v1/episodes", {"episodes": batch}).json()["episodes"]
    assert [(each["task"].partition("@")[0], each["seed"], each["sample"]) for each in shown] == [
        ("toy-read", 7, 0), ("toy-read", 8, 1), ("toy-read", 9, 2), ("toy-write", 0, 0),
    ]  # fmt: skip
    assert len({each["id"] for each in shown}) == 4
    assert server.places.taken == before + 4


def test_ids_cannot_be_guessed(http):
    ids = [http.open() for _ in range(20)]
    assert all(len(id) >= 32 for id in ids), "24 bytes in base64"
    assert len({id[:8] for id in ids}) == 20


def test_a_batch_that_is_sent_again_under_its_key_is_opened_once(http, server):
    before = server.places.taken
    body = {"episodes": [{"task": "toy-read", "samples": 2}], "key": "a key of sixteen characters or more"}
    seen = together(*[lambda: http.send("POST", "/v1/episodes", body).json()] * 6)
    assert seen == [seen[0]] * 6
    assert server.places.taken == before + 2
    other = {**body, "episodes": [{"task": "toy-read", "samples": 3}]}
    assert refused(http.send("POST", "/v1/episodes", other)) == (409, "key_conflict")
    assert server.places.taken == before + 2


def test_a_full_server_says_when_to_come_back_and_opens_all_or_none():
    with serving(sessions=3) as server, Http(server) as http:
        first = http.open(samples=2)
        for samples in (2, 3):
            full = http.send("POST", "/v1/episodes", {"episodes": [{"task": "toy-read", "samples": samples}]})
            assert refused(full) == (503, "server_full")
            assert int(full.headers["retry-after"]) >= 1
            assert server.places.taken == 2, "not even the one there was room for"
        third = http.open()
        assert refused(http.send("POST", "/v1/episodes", {"episodes": [{"task": "toy-read"}]})) == (503, "server_full")
        http.answer(third, 1, READING.answer)
        http.send("DELETE", f"/v1/episodes/{first}")
        assert server.places.taken == 1, "who has answered or closed makes room"
        http.open(samples=2)


def test_many_that_ask_at_once_never_get_more_than_there_is():
    with serving(sessions=4) as server, Http(server) as http:
        body = {"episodes": [{"task": "toy-read"}]}
        statuses = together(*[lambda: http.send("POST", "/v1/episodes", body).status_code] * 10)
        assert sorted(statuses) == [201] * 4 + [503] * 6
        assert server.places.taken == 4


def test_a_batch_that_can_never_fit_is_not_to_be_tried_again():
    with serving(sessions=3) as server, Http(server) as http:
        for samples in (4, 2**31 - 1):
            body = {"episodes": [{"task": "toy-read"}, {"task": "toy-read", "samples": samples}]}
            assert refused(http.send("POST", "/v1/episodes", body)) == (422, "batch_too_large")


def test_a_task_that_cannot_be_attempted_opens_nothing():
    unjudgeable = replace(READING, task_id="unjudgeable", rubric=())
    with serving(GivenTasks([bound(READING), bound(unjudgeable)])) as server, Http(server) as http:
        body = {"episodes": [{"task": "toy-read"}, {"task": "unjudgeable"}], "key": "k" * 16}
        for _ in range(2):
            assert refused(http.send("POST", "/v1/episodes", body)) == (422, "unusable_task")
        assert server.places.taken == 0


STEPS = ["call", "reply", "answer"]
BODIES = {"call": {"n": 1, "tool": "x"}, "reply": {"n": 1, "text": "x"}, "answer": {"n": 1, "answer": 1}}


def in_every_way(http: Http, id: str) -> set[tuple[int, str]]:
    """How everything that can be done to an episode is refused."""
    path = f"/v1/episodes/{id}"
    return {
        refused(http.send("GET", path)),
        *(refused(http.send("POST", f"{path}/{kind}", BODIES[kind])) for kind in STEPS),
    }


@pytest.mark.parametrize("id", ["nothing", "A" * 32, "%2e%2e", "x" * 4000])
def test_an_episode_that_never_was_is_unknown(http, id):
    assert in_every_way(http, id) == {(404, "unknown_episode")}
    assert refused(http.send("DELETE", f"/v1/episodes/{id}")) == (404, "unknown_episode")


def test_a_closed_episode_has_failed_and_is_gone(http, server):
    before = server.places.taken
    id = http.open("toy-write")
    http.call(id, 1, "lend_book", LEND)
    closed = http.send("DELETE", f"/v1/episodes/{id}")
    assert (closed.status_code, closed.json()) == (200, {"status": "fail", "reward": 0.0})
    assert in_every_way(http, id) == {(410, "episode_closed")}
    assert http.send("DELETE", f"/v1/episodes/{id}").json() == closed.json(), "its reply may have been lost"
    assert server.places.taken == before


def test_closing_many_times_at_once_closes_once(http):
    id = http.open("toy-program")
    http.answer(id, 1, PROGRAM.answer)
    seen = together(*[lambda: http.send("DELETE", f"/v1/episodes/{id}").json()] * 6)
    assert seen == [{"status": "pass", "reward": 1.0}] * 6


def test_an_idle_episode_expires_and_says_so():
    with serving(idle_s=0.2) as server, Http(server) as http:
        id = http.open()
        deadline = time.monotonic() + DEADLINE_S
        while server.places.taken and time.monotonic() < deadline:
            time.sleep(0.02)
        assert in_every_way(http, id) == {(410, "episode_expired")}
        assert refused(http.send("DELETE", f"/v1/episodes/{id}")) == (410, "episode_expired")


def test_an_episode_expires_only_when_nobody_asked_for_it():
    now = [0.0]

    async def main() -> None:
        live = EpisodeRegistry(Places(2), ServingLimits(idle_s=30), clock=lambda: now[0])
        async with live.running():
            used, idle = await live.create([Wanted(bound=bound(READING), seed=seed, sample=0) for seed in (1, 2)])
            now[0] = 20
            await live.show(used.id)
            now[0] = 40
            await live.sweep()
            assert live.count == 1
            await live.show(used.id)
            with pytest.raises(RefusedError, match="episode_expired"):
                await live.show(idle.id)
            now[0] = 71
            await live.sweep()
            assert live.count == 0

    anyio.run(main)


def test_when_the_calls_are_used_up_the_answer_can_still_be_given():
    with serving(calls=2) as server, Http(server) as http:
        id, book = http.open(), {"book_id": "B3"}
        assert http.call(id, 1, "get_book", book).json()["status"] == "ok"
        assert http.send("POST", f"/v1/episodes/{id}/reply", {"n": 2, "text": "Which?"}).json()["status"] == "ok"
        for _ in range(2):
            refusal = http.call(id, 3, "get_book", book)
            assert refused(refusal) == (409, "call_limit")
            assert "has 2 calls" in refusal.json()["error"]["message"]
        assert http.call(id, 1, "get_book", book).json()["status"] == "ok", "a repetition is none"
        assert http.answer(id, 3, READING.answer).json()["status"] == "pass"
        with EpisodeClient(server.url) as client, client.episode("toy-read") as remote:
            seen = [remote.call("get_book", book).status for _ in range(3)]
            assert seen == ["ok", "ok", "refused"]
            assert remote.answer(READING.answer).status == "pass"


SOURCE = 'def catalogue(world):\n    return {"titles": ["Winter Maps"] * 5000}\n'
ANYTHING = {"type": "object"}
CATALOGUE = replace(
    ENVIRONMENT.tools[0],
    tool_id="catalogue", name="catalogue", input_schema=ANYTHING, output_schema=ANYTHING, source=SOURCE,
)  # fmt: skip


def test_of_long_replies_the_latest_can_be_asked_for_again_and_an_earlier_one_says_that_it_is_gone():
    crowded = bound(READING, replace(ENVIRONMENT, tools=(*ENVIRONMENT.tools, CATALOGUE)))
    with serving(GivenTasks([crowded]), kept_bytes=40_000) as server, Http(server) as http:
        id = http.open()
        given = [http.call(id, n, "catalogue", {}).json() for n in (1, 2, 3)]
        assert all(len(json.dumps(reply["value"])) > 14_000 for reply in given)
        assert [http.call(id, n, "catalogue", {}).json() for n in (2, 3)] == given[1:]
        gone = http.call(id, 1, "catalogue", {})
        assert refused(gone) == (410, "step_forgotten")
        assert "Step 1 was taken" in gone.json()["error"]["message"]
        assert refused(http.call(id, 2, "catalogue", {"a": 1})) == (409, "step_conflict")
        assert http.answer(id, 4, READING.answer).json()["status"] == "pass"


def test_even_the_smallest_room_keeps_the_last_reply():
    with serving(kept_bytes=0) as server, Http(server) as http:
        id = http.open("toy-write")
        lent = http.call(id, 1, "lend_book", LEND).json()
        assert http.call(id, 1, "lend_book", LEND).json() == lent
        http.call(id, 2, "get_book", {"book_id": "B5"})
        assert refused(http.call(id, 1, "lend_book", LEND)) == (410, "step_forgotten")


@dataclass(frozen=True, kw_only=True)
class Watched(BoundTask):
    """A task whose episodes are seen from the side of the server."""

    opened: list[Episode]

    def episode(self, seed=0, *, sandbox=None):
        self.opened.append(Episode(self.task, self.environment, seed=seed, sandbox=sandbox))
        return self.opened[-1]


def test_what_was_said_is_not_kept_whole_in_the_episode():
    environment = replace(ENVIRONMENT, tools=(*ENVIRONMENT.tools, CATALOGUE))
    watched = Watched(version="long@0", task=READING, environment=environment, opened=[])
    with serving(GivenTasks([watched])) as server, Http(server) as http:
        id = http.open("long")
        for n in (1, 2):
            assert "[cut]" in http.call(id, n, "catalogue", {}).json()["value"]
        [episode] = watched.opened
        assert (len(episode.steps), len(episode.uncut)) == (0, 0)
        assert http.answer(id, 3, READING.answer).json()["status"] == "pass"


class SilentUser:
    """A user who says nothing until told to."""

    def __init__(self) -> None:
        self.asked, self.may_speak = threading.Semaphore(0), threading.Event()

    def reply(self, text: str) -> str:
        self.asked.release()
        assert self.may_speak.wait(DEADLINE_S)
        return f"You said: {text}"


@dataclass(frozen=True, kw_only=True)
class WithUser(BoundTask):
    """A task whose user is this one."""

    user: SilentUser

    def episode(self, seed=0, *, sandbox=None):
        return Episode(self.task, self.environment, seed=seed, sandbox=sandbox, user=self.user)


def test_steps_that_take_long_hold_up_no_other_episode():
    user = SilentUser()
    slow = WithUser(version="slow@0", task=READING, environment=ENVIRONMENT, user=user)
    many = 45  # more than the threads that are there for everything
    with serving(GivenTasks([slow, bound(READING)])) as server, Http(server) as http:
        body = {"episodes": [{"task": "slow", "samples": many}]}
        waiting = [shown["id"] for shown in http.send("POST", "/v1/episodes", body).json()["episodes"]]
        said: dict[str, str] = {}

        def speak(id: str) -> None:
            reply = http.send("POST", f"/v1/episodes/{id}/reply", {"n": 1, "text": id})
            said[id] = reply.json()["value"]["user"]

        threads = [threading.Thread(target=speak, args=(id,)) for id in waiting]
        for thread in threads:
            thread.start()
        assert all(user.asked.acquire(timeout=DEADLINE_S) for _ in waiting), "all of them are in their step"
        id = http.open()
        assert http.call(id, 1, "get_book", {"book_id": "B3"}).json()["status"] == "ok"
        assert http.answer(id, 2, READING.answer).json()["status"] == "pass"
        assert said == {}
        user.may_speak.set()
        for thread in threads:
            thread.join(DEADLINE_S)
        assert said == {id: f"You said: {id}" for id in waiting}


def test_a_step_that_comes_again_while_it_is_taken_waits_for_the_first():
    user = SilentUser()
    slow = WithUser(version="slow@0", task=READING, environment=ENVIRONMENT, user=user)
    step, replies = Step(kind="reply", text="Which one?"), []

    async def main() -> None:
        live = EpisodeRegistry(Places(1), ServingLimits())
        async with live.running():
            [opened] = await live.create([Wanted(bound=slow, seed=0, sample=0)])

            async def speak() -> None:
                replies.append(await live.step(opened.id, 1, step))

            async with anyio.create_task_group() as group:
                group.start_soon(speak)
                assert await run_sync(user.asked.acquire, True, DEADLINE_S)
                group.start_soon(speak)
                await anyio.wait_all_tasks_blocked()
                user.may_speak.set()
            assert replies == [replies[0]] * 2
            assert (await live.show(opened.id)).steps == 1

    anyio.run(main)
    assert not user.asked.acquire(blocking=False), "the user was asked once"


def test_closing_ends_a_step_that_is_under_way(monkeypatch):
    monkeypatch.setattr(sessions, "CALL_TIMEOUT_S", 3.0 * DEADLINE_S)  # so that nothing else ends it in time
    source = "def spin(world):\n    while True:\n        pass\n"
    anything = {"type": "object"}
    spin = replace(
        ENVIRONMENT.tools[0], tool_id="spin", name="spin", input_schema=anything, output_schema=anything, source=source
    )
    spinning = bound(READING, replace(ENVIRONMENT, tools=(*ENVIRONMENT.tools, spin)))
    replies = []

    async def main() -> None:
        live = EpisodeRegistry(Places(1), ServingLimits())
        async with live.running():
            [opened] = await live.create([Wanted(bound=spinning, seed=0, sample=0)])

            async def call() -> None:
                replies.append(await live.step(opened.id, 1, Step(kind="tool", tool="spin")))

            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await anyio.wait_all_tasks_blocked()
                with anyio.fail_after(DEADLINE_S):
                    assert (await live.close(opened.id)).status == "fail"

    anyio.run(main)
    assert [(reply.status, reply.value["error"]["code"]) for reply in replies] == [("error", "crash")]


def descendants() -> int:
    return len(psutil.Process().children(recursive=True))


def test_a_server_that_stops_leaves_no_session_behind():
    with serving() as server, Http(server) as http:
        http.call(http.open(), 1, "get_book", {"book_id": "B3"})
        before = descendants()  # the sandbox is up, and holds a session
        ids = [http.open() for _ in range(5)]
        for id in ids:
            http.call(id, 1, "get_book", {"book_id": "B3"})
        assert descendants() >= before + 5
        server.stop()
        assert server.places.taken == 0
        deadline = time.monotonic() + DEADLINE_S
        while descendants() >= before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert descendants() < before
