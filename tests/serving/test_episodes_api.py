import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import anyio
import psutil
import pytest
from anyio.to_thread import run_sync
from openapi_spec_validator import validate as validate_openapi

from agent_world import world
from agent_world.environments import session as sessions
from agent_world.lake.errors import NotFoundError
from agent_world.rollouts import episode as episodes
from agent_world.rollouts.episode import Episode
from agent_world.rollouts.model import Step
from agent_world.serving.episodes import routes
from agent_world.serving.episodes_messages import RefusedError
from agent_world.serving.episodes_numbered import Wanted
from agent_world.serving.episodes_openapi import document, page
from agent_world.serving.episodes_registry import EpisodeLimits, LiveEpisodes
from agent_world.serving.episodes_tasks import HeldTasks, LakeTasks
from agent_world.world import BoundTask
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING
from tests.serving.episodes_server import DEADLINE_S, LEND, TASKS, Http, Server, bound, refused, serving, together
from tests.toy_lake import save_toy


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def http(server) -> Iterator[Http]:
    with Http(server) as client:
        yield client


def test_an_episode_goes_over_http(http):
    opened = http.send("POST", "/v1/episodes", {"episodes": [{"task": "toy-write", "seed": 5}]})
    assert opened.status_code == 201
    [shown] = opened.json()["episodes"]
    assert shown["task"] == bound(WRITING).version
    assert (shown["seed"], shown["sample"], shown["steps"], shown["outcome"]) == (5, 0, 0, None)
    assert (shown["instruction"], shown["answer_schema"]) == (WRITING.instruction, WRITING.answer_schema)
    assert [tool["name"] for tool in shown["tools"]] == [tool.name for tool in ENVIRONMENT.tools]
    assert set(shown["tools"][0]) == {"name", "description", "input_schema", "output_schema", "writes"}
    id = shown["id"]
    found = http.call(id, 1, "search_books", {"title": "nordic"}).json()
    assert found["value"] == {"items": [{"book_id": "B5", "title": "Nordic Light"}], "total": 1}
    said = http.send("POST", f"/v1/episodes/{id}/reply", {"n": 2, "text": "Which Tom?"}).json()
    assert (said["n"], said["status"], list(said["value"])) == (2, "ok", ["user"])
    assert http.call(id, 3, "lend_book", LEND).json()["status"] == "ok"
    assert http.send("GET", f"/v1/episodes/{id}").json() == {**shown, "steps": 3}
    assert http.answer(id, 4, {"status": "out"}).json() == {"status": "pass", "reward": 1.0}
    assert http.send("GET", f"/v1/episodes/{id}").json()["outcome"] == {"status": "pass", "reward": 1.0}


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "code"),
    [
        ("get_book", {"book_id": "ZZ"}, "refused", "not_found"),
        ("get_book", {"book_id": 5}, "invalid", "invalid_arguments"),
        ("nothing", {}, "invalid", "unknown_tool"),
        ("", {}, "invalid", "malformed_step"),
        ("search_books", {"title": "x" * 70_000}, "invalid", "malformed_step"),
    ],
)
def test_what_an_agent_does_wrong_is_an_observation(http, tool, arguments, status, code):
    id = http.open()
    seen = http.call(id, 1, tool, arguments)
    assert seen.status_code == 200
    assert (seen.json()["status"], seen.json()["value"]["error"]["code"]) == (status, code)
    assert http.call(id, 2, "search_books", {"title": "maps"}).json()["status"] == "ok"


def test_a_wrong_answer_fails_and_shows_no_more(http):
    assert http.answer(http.open(), 1, {"author": "Nobody", "copies": 1}).json() == {"status": "fail", "reward": 0.0}
    assert http.answer(http.open(), 1, "no object").json() == {"status": "fail", "reward": 0.0}


def test_a_verifier_that_breaks_is_an_infra_error_without_a_reward():
    broken = replace(PROGRAM, verifier="def verify(answer, gold, initial, final):\n    raise ValueError(gold)\n")
    with serving(HeldTasks([bound(broken)])) as server, Http(server) as http:
        id = http.open("toy-program")
        ended = http.answer(id, 1, PROGRAM.answer).json()
        assert ended == {"status": "infra_error", "reward": None}
        assert http.answer(id, 1, PROGRAM.answer).json() == ended


def test_nothing_leads_to_the_gold_answer_the_plan_the_rubric_or_the_verifier():
    secret = "goldfinch"
    verifier = f"def verify(answer, gold, initial, final):\n    assert {secret!r}\n    return [{secret!r}]\n"
    tasks = [
        replace(
            task,
            answer={name: secret for name in task.answer},
            plan=tuple(replace(call, tool=secret) for call in task.plan),
            shape=(secret,),
            rubric=tuple(replace(item, name=f"{secret}-{item.name}", text=secret) for item in task.rubric),
            solution=task.solution and f"# {secret}",
            verifier=task.verifier and verifier,
            serves={secret: secret},
        )
        for task in (READING, WRITING, PROGRAM)
    ]
    texts = []
    with serving(HeldTasks([bound(task) for task in tasks])) as server, Http(server) as http:
        texts += [http.send("GET", path).text for path in ("/v1/tasks", "/v1/openapi.json", "/v1/docs")]
        for task, answer in zip(tasks, (READING.answer, {"status": "out"}, PROGRAM.answer), strict=True):
            opened = http.send("POST", "/v1/episodes", {"episodes": [{"task": task.task_id, "samples": 2}]})
            first, second = (shown["id"] for shown in opened.json()["episodes"])
            replies = [
                opened,
                http.call(first, 1, "lend_book", LEND),
                http.call(first, 2, "nothing", {}),
                http.call(first, 9, "nothing", {}),
                http.answer(first, 3, answer),
                http.answer(second, 1, [answer]),
                *(http.send("GET", f"/v1/episodes/{id}") for id in (first, second)),
                *(http.send("DELETE", f"/v1/episodes/{id}") for id in (first, second)),
            ]
            texts += [reply.text for reply in replies]
    assert len(texts) == 33
    assert not [text for text in texts if secret in text]


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
    before = server.live.count
    batch = [{"task": "toy-read", "seed": 7, "samples": 3}, {"task": bound(WRITING).version}]
    shown = http.send("POST", "/v1/episodes", {"episodes": batch}).json()["episodes"]
    assert [(each["task"].partition("@")[0], each["seed"], each["sample"]) for each in shown] == [
        ("toy-read", 7, 0), ("toy-read", 8, 1), ("toy-read", 9, 2), ("toy-write", 0, 0),
    ]  # fmt: skip
    assert len({each["id"] for each in shown}) == 4
    assert server.live.count == before + 4


def test_ids_cannot_be_guessed(http):
    ids = [http.open() for _ in range(20)]
    assert all(len(id) >= 32 for id in ids), "24 bytes in base64"
    assert len({id[:8] for id in ids}) == 20


def test_a_batch_that_is_sent_again_under_its_key_is_opened_once(http, server):
    before = server.live.count
    body = {"episodes": [{"task": "toy-read", "samples": 2}], "key": "a key of sixteen characters or more"}
    seen = together(*[lambda: http.send("POST", "/v1/episodes", body).json()] * 6)
    assert seen == [seen[0]] * 6
    assert server.live.count == before + 2
    other = {**body, "episodes": [{"task": "toy-read", "samples": 3}]}
    assert refused(http.send("POST", "/v1/episodes", other)) == (409, "key_conflict")
    assert server.live.count == before + 2


def test_a_full_server_says_when_to_come_back_and_opens_all_or_none():
    with serving(most=3) as server, Http(server) as http:
        first = http.open(samples=2)
        for samples in (2, 3):
            full = http.send("POST", "/v1/episodes", {"episodes": [{"task": "toy-read", "samples": samples}]})
            assert refused(full) == (503, "server_full")
            assert int(full.headers["retry-after"]) >= 1
            assert server.live.count == 2, "not even the one there was room for"
        third = http.open()
        assert refused(http.send("POST", "/v1/episodes", {"episodes": [{"task": "toy-read"}]})) == (503, "server_full")
        http.answer(third, 1, READING.answer)
        http.send("DELETE", f"/v1/episodes/{first}")
        assert server.live.count == 1, "who has answered or closed makes room"
        http.open(samples=2)


def test_many_that_ask_at_once_never_get_more_than_there_is():
    with serving(most=4) as server, Http(server) as http:
        body = {"episodes": [{"task": "toy-read"}]}
        statuses = together(*[lambda: http.send("POST", "/v1/episodes", body).status_code] * 10)
        assert sorted(statuses) == [201] * 4 + [503] * 6
        assert server.live.count == 4


def test_a_batch_that_can_never_fit_is_not_to_be_tried_again():
    with serving(most=3) as server, Http(server) as http:
        for samples in (4, 2**31 - 1):
            body = {"episodes": [{"task": "toy-read"}, {"task": "toy-read", "samples": samples}]}
            assert refused(http.send("POST", "/v1/episodes", body)) == (422, "batch_too_large")


def test_a_task_that_cannot_be_attempted_opens_nothing():
    unjudgeable = replace(READING, task_id="unjudgeable", rubric=())
    with serving(HeldTasks([bound(READING), bound(unjudgeable)])) as server, Http(server) as http:
        body = {"episodes": [{"task": "toy-read"}, {"task": "unjudgeable"}], "key": "k" * 16}
        for _ in range(2):
            assert refused(http.send("POST", "/v1/episodes", body)) == (422, "unusable_task")
        assert server.live.count == 0


@pytest.mark.parametrize("task", ["nothing", "toy-", "", "toy-read@0", "../toy-read", "é" * 5000])
def test_a_task_must_be_one(http, task):
    body = {"episodes": [{"task": "toy-read"}, {"task": task}]}
    assert refused(http.send("POST", "/v1/episodes", body)) == (404, "unknown_task")


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
    before = server.live.count
    id = http.open("toy-write")
    http.call(id, 1, "lend_book", LEND)
    closed = http.send("DELETE", f"/v1/episodes/{id}")
    assert (closed.status_code, closed.json()) == (200, {"status": "fail", "reward": 0.0})
    assert in_every_way(http, id) == {(410, "episode_closed")}
    assert http.send("DELETE", f"/v1/episodes/{id}").json() == closed.json(), "its reply may have been lost"
    assert server.live.count == before


def test_closing_many_times_at_once_closes_once(http):
    id = http.open("toy-program")
    http.answer(id, 1, PROGRAM.answer)
    seen = together(*[lambda: http.send("DELETE", f"/v1/episodes/{id}").json()] * 6)
    assert seen == [{"status": "pass", "reward": 1.0}] * 6


def test_an_idle_episode_expires_and_says_so():
    with serving(idle_s=0.2) as server, Http(server) as http:
        id = http.open()
        deadline = time.monotonic() + DEADLINE_S
        while server.live.count and time.monotonic() < deadline:
            time.sleep(0.02)
        assert in_every_way(http, id) == {(410, "episode_expired")}
        assert refused(http.send("DELETE", f"/v1/episodes/{id}")) == (410, "episode_expired")


def test_an_episode_expires_only_when_nobody_asked_for_it():
    now = [0.0]

    async def main() -> None:
        live = LiveEpisodes(EpisodeLimits(idle_s=30), clock=lambda: now[0])
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


def nested(depth: int) -> bytes:
    return b'{"n":1,"tool":"get_book","arguments":{"book_id":' + b"[" * depth + b"]" * depth + b"}}"


GOOD = b'{"n":1,"tool":"get_book","arguments":{"book_id":"B3"}}'
JSON = "application/json"


@pytest.mark.parametrize(
    ("body", "status", "code", "words"),
    [
        (b"", 400, "malformed_json", ""),
        (GOOD[:-1], 400, "malformed_json", ""),
        (GOOD + b"x", 400, "malformed_json", ""),
        (b"\xff\xfe", 400, "malformed_json", "utf-8"),
        (GOOD.replace(b'"B3"', b"NaN"), 400, "malformed_json", "NaN is not JSON"),
        (GOOD.replace(b'"B3"', b"1e999"), 400, "malformed_json", "too large"),
        (GOOD.replace(b'"B3"', b"1" * 5000), 400, "malformed_json", "digits"),
        (GOOD.replace(b'"B3"', b'"\\ud800"'), 400, "malformed_json", "surrogate"),
        (GOOD.replace(b'"n":1', b'"n":1,"n":1'), 400, "malformed_json", "names a key twice"),
        (nested(63), 400, "malformed_json", "nested more than 64 deep"),
        (nested(900), 400, "malformed_json", "nested"),
        (nested(200_000), 400, "malformed_json", "nested"),
        (b'"' + b"x" * (1 << 20) + b'"', 413, "too_large", "1048576"),
        (b"[1]", 422, "invalid_request", "an object is expected"),
        (b"null", 422, "invalid_request", "an object is expected"),
        (b"{}", 422, "invalid_request", "tool"),
        (GOOD.replace(b'"n":1,', b""), 422, "invalid_request", "n: "),
        (GOOD.replace(b'"n":1', b'"n":0'), 422, "invalid_request", "n: "),
        (GOOD.replace(b'"n":1', b'"n":-1'), 422, "invalid_request", "n: "),
        (GOOD.replace(b'"n":1', b'"n":"1"'), 422, "invalid_request", "n: "),
        (GOOD.replace(b'"n":1', b'"n":1.0'), 422, "invalid_request", "n: "),
        (GOOD.replace(b'"n":1', b'"n":true'), 422, "invalid_request", "n: "),
        (GOOD.replace(b'"n":1', b'"n":' + b"9" * 100), 422, "invalid_request", "n: "),
        (GOOD.replace(b'"get_book"', b"7"), 422, "invalid_request", "tool: "),
        (GOOD.replace(b'{"book_id":"B3"}', b'["B3"]'), 422, "invalid_request", "arguments: "),
        (GOOD.replace(b'{"book_id":"B3"}', b'"{}"'), 422, "invalid_request", "arguments: "),
        (GOOD.replace(b'"n":1', b'"n":1,"seed":1'), 422, "invalid_request", "seed: "),
    ],
)
def test_a_body_that_is_not_understood_is_refused_and_nothing_is_done(http, body, status, code, words):
    id = http.open()
    response = http.send("POST", f"/v1/episodes/{id}/call", content=body, headers={"content-type": JSON})
    assert refused(response) == (status, code)
    assert words in response.json()["error"]["message"]
    assert len(response.content) < 2000, "what was sent is not sent back"
    assert http.send("GET", f"/v1/episodes/{id}").json()["steps"] == 0


def test_what_is_just_not_too_deep_goes_through(http):
    seen = http.send("POST", f"/v1/episodes/{http.open()}/call", content=nested(62), headers={"content-type": JSON})
    assert (seen.status_code, seen.json()["status"]) == (200, "invalid")


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("", {"episodes": []}, "episodes: "),
        ("", {"episodes": {"task": "toy-read"}}, "episodes: "),
        ("", {"task": "toy-read"}, "task: "),
        ("", {"episodes": [{"task": 5}]}, "episodes.0.task: "),
        ("", {"episodes": [{"task": "toy-read"}, {"task": "toy-read", "seed": -1}]}, "episodes.1.seed: "),
        ("", {"episodes": [{"task": "toy-read", "seed": 2**63}]}, "episodes.0.seed: "),
        ("", {"episodes": [{"task": "toy-read", "samples": 0}]}, "episodes.0.samples: "),
        ("", {"episodes": [{"task": "toy-read"}], "key": "short"}, "key: "),
        ("/ID/reply", {"n": 1, "text": 5}, "text: "),
        ("/ID/reply", {"n": 1}, "text: "),
        ("/ID/answer", {"n": 1}, "answer: "),
        ("/ID/answer", {"n": None, "answer": 1}, "n: "),
    ],
)
def test_a_field_that_is_wrong_is_named(http, path, body, words):
    response = http.send("POST", f"/v1/episodes{path.replace('ID', http.open())}", body)
    assert refused(response) == (422, "invalid_request")
    assert words in response.json()["error"]["message"]


@pytest.mark.parametrize("declared", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"])
def test_a_body_must_be_declared_as_json(http, declared):
    path, headers = f"/v1/episodes/{http.open()}/call", {"content-type": declared}
    assert refused(http.send("POST", path, content=GOOD, headers=headers)) == (415, "not_json")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("GET", "/v1/episodes", "POST"), ("PUT", "/v1/tasks", "GET"), ("POST", "/v1/episodes/x", "GET, DELETE")],
)
def test_another_method_is_refused_in_the_same_form(http, method, path, allow):
    response = http.send(method, path)
    assert refused(response) == (405, "method_not_allowed")
    assert response.headers["allow"] == allow


@pytest.mark.parametrize("path", ["/v1/", "/v1/nothing", "/v1/episodes/a/b/c", "/v1/episodes/"])
def test_a_path_that_is_none_is_refused_in_the_same_form(http, path):
    assert refused(http.send("GET", path)) == (404, "no_such_path")


def test_an_episode_without_an_answer_after_its_last_step_has_failed():
    with serving(steps=2) as server, Http(server) as http:
        id = http.open()
        assert http.call(id, 1, "get_book", {"book_id": "B3"}).json()["outcome"] is None
        last = http.call(id, 2, "get_book", {"book_id": "B3"}).json()
        assert (last["status"], last["outcome"]) == ("ok", {"status": "fail", "reward": 0.0})
        assert http.call(id, 2, "get_book", {"book_id": "B3"}).json() == last
        assert refused(http.answer(id, 3, READING.answer)) == (409, "episode_over")
        other = http.open()
        http.call(other, 1, "get_book", {"book_id": "B3"})
        assert http.answer(other, 2, READING.answer).json()["status"] == "pass", "the last step may be the answer"


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
    with serving(HeldTasks([slow, bound(READING)])) as server, Http(server) as http:
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
        live = LiveEpisodes(EpisodeLimits())
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
        live = LiveEpisodes(EpisodeLimits())
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
        assert server.live.count == 0
        deadline = time.monotonic() + DEADLINE_S
        while descendants() >= before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert descendants() < before


def test_what_breaks_in_the_server_is_said_and_not_shown(http, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("a secret of the server")

    id = http.open()
    monkeypatch.setattr(LiveEpisodes, "show", broken)
    failed = http.send("GET", f"/v1/episodes/{id}")
    assert refused(failed) == (500, "internal")
    assert "secret" not in failed.text
    assert "a secret of the server" in caplog.text


def test_tasks_are_listed_page_by_page(http):
    seen, after, pages = [], "", 0
    while after is not None:
        listed = http.send("GET", "/v1/tasks", params={"limit": 2, "after": after}).json()
        seen, after, pages = seen + listed["tasks"], listed["next"], pages + 1
    assert [task["task"] for task in seen] == sorted(bound(task).version for task in (READING, WRITING, PROGRAM))
    assert pages == 2
    assert set(seen[0]) == {"task", "environment", "instruction", "tier", "purpose", "round"}
    assert http.send("GET", "/v1/tasks").json() == {"tasks": seen, "next": None}


def test_tasks_are_filtered():
    held = replace(READING, task_id="held", purpose="held_out")
    with serving(HeldTasks([bound(READING), bound(held), bound(WRITING)])) as server, Http(server) as http:

        def listed(**query: str) -> list[str]:
            return [
                each["task"].partition("@")[0] for each in http.send("GET", "/v1/tasks", params=query).json()["tasks"]
            ]

        assert listed() == ["held", "toy-read", "toy-write"]
        assert listed(purpose="held_out") == ["held"]
        assert listed(environment="toy-library") == listed(environment="toy-library@0") == listed()
        assert listed(environment="toy") == []
        assert listed(tier="train") == []


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=1001", "tier=easy", "purpose=fun", "page=2"])
def test_a_query_that_is_wrong_is_named(http, query):
    response = http.send("GET", "/v1/tasks", params=query)
    assert refused(response) == (422, "invalid_request")
    assert query.partition("=")[0] in response.json()["error"]["message"]


def test_a_lake_gives_its_accepted_tasks_and_no_others(tmp_path):
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("setup", derivation="d0") as batch:
        environment, _ = save_toy(batch, ENVIRONMENT)
        tasks = {
            name: world.save_task(batch, replace(READING, task_id=name, environments=(environment,)))
            for name in ("trained", "hard-one", "rejected", "unjudged")
        }
        batch.observe(tasks["trained"], {"accepted": True, "tier": "train"})
        batch.observe(tasks["hard-one"], {"accepted": True, "tier": "hard"})
        batch.observe(tasks["rejected"], {"accepted": False})
    source = LakeTasks(lake)
    assert [(entry.task, entry.tier) for entry in source.entries()] == [
        (tasks["hard-one"], "hard"), (tasks["trained"], "train"),
    ]  # fmt: skip
    with serving(source) as server, Http(server) as http:
        assert http.answer(http.open("trained"), 1, READING.answer).json()["status"] == "pass"
        for name in ("rejected", "unjudged", tasks["rejected"]):
            body = {"episodes": [{"task": name}]}
            assert refused(http.send("POST", "/v1/episodes", body)) == (404, "unknown_task")
    assert LakeTasks(lake, [ENVIRONMENT.environment_id]).entries() == source.entries()
    elsewhere = LakeTasks(lake, ["another"])
    assert elsewhere.entries() == []
    with pytest.raises(NotFoundError):
        elsewhere.task("trained")


def test_the_description_is_openapi_and_names_what_is_served():
    validate_openapi(document())
    described = {path: {method.upper() for method in methods} for path, methods in document()["paths"].items()}
    served = {route.path: set(route.endpoint.methods) for route in routes(TASKS).routes}
    about = {"/v1/openapi.json", "/v1/docs", "/v1/{path:path}"}
    assert {path: methods for path, methods in served.items() if path not in about} == described


def test_the_description_is_served(http):
    assert http.send("GET", "/v1/openapi.json").json() == json.loads(json.dumps(document()))
    shown = http.send("GET", "/v1/docs")
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in shown.headers["content-security-policy"]


def test_the_page_needs_nothing_from_elsewhere_and_leaves_nothing_out():
    for path, methods in document()["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page()
    for name in document()["components"]["schemas"]:
        assert f"id={name}>" in page()
    assert "//" not in page()
    assert "<script" not in page()
