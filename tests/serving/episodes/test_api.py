import json
from dataclasses import replace

import pytest
from openapi_spec_validator import validate as validate_openapi

from agent_world import world
from agent_world.identity import VersionId
from agent_world.lake.errors import NotFoundError
from agent_world.serving.episodes.api import episode_routes
from agent_world.serving.episodes.openapi import document, page
from agent_world.serving.episodes.registry import EpisodeRegistry
from agent_world.serving.limits import Places, ServingLimits
from agent_world.serving.tasks import GivenTasks, LakeTasks
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING
from tests.serving.episodes.server import LEND, TASKS, Http, bound, refused, serving
from tests.toy_lake import save_toy


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


def test_an_answer_that_is_too_long_is_refused_and_the_episode_goes_on(http):
    id = http.open()
    for _ in range(2):
        refusal = http.answer(id, 1, {"author": "x" * 70_000, "copies": 1})
        assert refused(refusal) == (422, "malformed_step")
        assert "65536 characters" in refusal.json()["error"]["message"]
    shown = http.send("GET", f"/v1/episodes/{id}").json()
    assert (shown["steps"], shown["outcome"]) == (0, None)
    assert http.answer(id, 1, READING.answer).json() == {"status": "pass", "reward": 1.0}


def test_of_two_versions_of_a_task_none_is_taken_to_be_meant():
    versions = [replace(bound(READING), version=VersionId(f"toy-read@{n}")) for n in (1, 2)]
    with serving(GivenTasks([*versions, bound(WRITING)])) as server, Http(server) as http:
        for ref in ("toy-read", "toy-r", "toy-"):
            refusal = http.send("POST", "/v1/episodes", {"episodes": [{"task": ref}]})
            assert refused(refusal) == (422, "ambiguous_task")
            assert "toy-read@1, toy-read@2" in refusal.json()["error"]["message"]
        opened = http.send("POST", "/v1/episodes", {"episodes": [{"task": "toy-read@2"}, {"task": "toy-w"}]})
        assert [each["task"] for each in opened.json()["episodes"]] == ["toy-read@2", bound(WRITING).version]


def test_a_verifier_that_breaks_is_an_infra_error_without_a_reward():
    broken = replace(PROGRAM, verifier="def verify(answer, gold, initial, final):\n    raise ValueError(gold)\n")
    with serving(GivenTasks([bound(broken)])) as server, Http(server) as http:
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
    with serving(GivenTasks([bound(task) for task in tasks])) as server, Http(server) as http:
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


@pytest.mark.parametrize("task", ["nothing", "", "toy-read@0", "../toy-read", "é" * 5000])
def test_a_task_must_be_one(http, task):
    body = {"episodes": [{"task": "toy-read"}, {"task": task}]}
    assert refused(http.send("POST", "/v1/episodes", body)) == (404, "unknown_task")


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
        (nested(127), 400, "malformed_json", "more than 128 levels"),
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
    seen = http.send("POST", f"/v1/episodes/{http.open()}/call", content=nested(126), headers={"content-type": JSON})
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


def test_what_breaks_in_the_server_is_said_and_not_shown(http, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("a secret of the server")

    id = http.open()
    monkeypatch.setattr(EpisodeRegistry, "show", broken)
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
    with serving(GivenTasks([bound(READING), bound(held), bound(WRITING)])) as server, Http(server) as http:

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
    routes = episode_routes(TASKS, EpisodeRegistry(Places(1), ServingLimits()))
    served = {route.path: set(route.endpoint.methods) for route in routes}
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
