import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agent_world.errors import BadInputError
from agent_world.models.cassette import Cassette, NotRecordedError
from agent_world.models.chat import SUBMIT, ChatPolicy, messages, step_of, submit_name, tool_functions
from agent_world.models.client import ChatClient, Endpoint
from agent_world.rollouts.episode import Episode
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.model import Turn
from tests.rollouts.cases import ENVIRONMENT, READING, WRITING


class Model(ThreadingHTTPServer):
    """An OpenAI-compatible server that plays the gold plan of the task it is asked about."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.failures: list[tuple[int, dict, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def message(self, request: dict) -> dict:
        asked = request["messages"][1]["content"]
        task = next(task for task in (READING, WRITING) if task.instruction == asked)
        done = sum(message["role"] == "tool" for message in request["messages"])
        if done < len(task.plan):
            call = task.plan[done]
            function = {"name": call.tool, "arguments": json.dumps(dict(call.arguments))}
        else:
            function = {"name": SUBMIT, "arguments": json.dumps(task.answer)}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "x", "type": "function", "function": function}],
        }


class Handler(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.failures:
            status, headers, body = self.server.failures.pop(0)
        else:
            self.server.requests.append(request)
            self.server.headers.append(dict(self.headers))
            usage = {"prompt_tokens": 100, "completion_tokens": 10}
            status, headers = 200, {}
            body = json.dumps({"choices": [{"message": self.server.message(request)}], "usage": usage})
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body.encode()))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def client(model: Model, **more) -> ChatClient:
    options = {"backoff_s": 0.001, "api_key": "secret-key"}
    return ChatClient(Endpoint(base_url=model.url, model="toy", **options), **more)


def specs(samples: int = 2) -> list[EpisodeSpec]:
    return [
        EpisodeSpec(task=task, environment=ENVIRONMENT, sample=sample, seed=sample)
        for task in (READING, WRITING)
        for sample in range(samples)
    ]


def turn() -> Turn:
    with Episode(READING, ENVIRONMENT, seed=2) as episode:
        episode.call("search_books", {"title": "Winter Maps"})
        episode.reply("Which Winter Maps?")
        return episode.turn()


def test_a_model_behind_an_endpoint_plays_episodes(model):
    with client(model) as chat:
        policy = ChatPolicy(chat, max_parallel=4)
        trajectories = roll_out(specs(), policy)
        assert [trajectory.outcome.status for trajectory in trajectories] == ["pass"] * 4
        assert policy.name == "toy"
        assert chat.usage.calls == len(model.requests) == 2 * (3 + 4)
        assert (chat.usage.prompt_tokens, chat.usage.completion_tokens) == (1400, 140)


def test_the_model_gets_the_tools_the_answer_form_and_the_conversation(model):
    seen = turn()
    [system, user, call, result, reply, answer] = messages(seen, "Be good.")
    assert (system["content"], user["content"]) == ("Be good.", READING.instruction)
    assert call["tool_calls"][0]["function"] == {"name": "search_books", "arguments": '{"title":"Winter Maps"}'}
    assert (result["role"], result["tool_call_id"]) == ("tool", call["tool_calls"][0]["id"])
    assert json.loads(result["content"])["total"] == 1
    assert (reply["content"], answer["role"]) == ("Which Winter Maps?", "user")
    functions = {entry["function"]["name"]: entry["function"] for entry in tool_functions(seen)}
    assert set(functions) == {tool.name for tool in ENVIRONMENT.tools} | {SUBMIT}
    assert functions[SUBMIT]["parameters"] == READING.answer_schema


def test_nothing_secret_of_the_task_is_sent(model):
    with client(model) as chat:
        roll_out(specs(1), ChatPolicy(chat))
    sent = json.dumps(model.requests[0])
    assert not any(secret in sent for secret in ("Bo Lindqvist", "rubric", "SELECT", "secret-key"))
    assert model.headers[0]["authorization"] == "Bearer secret-key"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"content": "What do you mean?"}, "reply"),
        ({"content": "  "}, "malformed"),
        ({"tool_calls": [{"function": {"name": "get_book", "arguments": "{not json"}}]}, "malformed"),
        ({"tool_calls": [{"function": {"name": "get_book", "arguments": "[1]"}}]}, "malformed"),
        ({"tool_calls": [{"function": {"name": "get_book", "arguments": [1]}}]}, "malformed"),
        ({"tool_calls": [{"function": {"name": "get_book", "arguments": "[" * 5000}}]}, "malformed"),
        ({"tool_calls": [{"function": {"arguments": "{}"}}]}, "malformed"),
        ({"tool_calls": [{"function": {"name": "get_book", "arguments": {"book_id": "B3"}}}]}, "tool"),
        ({"tool_calls": [{"function": {"name": "get_book", "arguments": ""}}]}, "tool"),
        ({"tool_calls": [{"function": {"name": SUBMIT, "arguments": '{"copies": 1}'}}]}, "answer"),
    ],
)
def test_a_message_is_a_step(message, kind):
    assert step_of({"role": "assistant", **message}, SUBMIT).kind == kind


def test_a_tool_may_be_called_like_the_answer_function():
    from dataclasses import replace

    seen = turn()
    taken = replace(seen, tools=(*seen.tools, replace(seen.tools[0], name=SUBMIT)))
    assert submit_name(taken) == f"{SUBMIT}_"


def test_a_busy_endpoint_is_tried_again(model):
    model.failures = [(503, {}, "busy"), (429, {"retry-after": "0"}, "slow down")]
    with client(model) as chat:
        [trajectory] = roll_out(specs(1)[:1], ChatPolicy(chat))
    assert trajectory.outcome.status == "pass"


@pytest.mark.parametrize("failure", [(401, {}, "no such key"), (200, {}, "<html>"), (200, {}, '{"choices": []}')])
def test_an_endpoint_that_will_not_answer_is_an_infra_error_with_the_reason(model, failure):
    model.failures = [failure] * 20
    with client(model) as chat:
        [trajectory] = roll_out(specs(1)[:1], ChatPolicy(chat))
    assert trajectory.outcome.status == "infra_error"
    assert "EndpointError" in trajectory.outcome.detail
    assert "secret-key" not in trajectory.outcome.detail


def test_an_endpoint_is_named_by_url_and_model():
    endpoint = Endpoint.parse("http://127.0.0.1:8000/v1/#Qwen/Qwen3-8B", api_key="secret-key")
    assert (endpoint.base_url, endpoint.model) == ("http://127.0.0.1:8000/v1", "Qwen/Qwen3-8B")
    assert "secret-key" not in repr(endpoint)
    for wrong in ("http://127.0.0.1:8000/v1", "127.0.0.1#m", "#m"):
        with pytest.raises(BadInputError, match="URL#model"):
            Endpoint.parse(wrong)


def test_a_recorded_run_replays_without_the_model(model, tmp_path):
    tape = tmp_path / "gold.jsonl"
    with client(model, cassette=Cassette(tape, "record")) as chat:
        recorded = roll_out(specs(), ChatPolicy(chat))
    assert "secret-key" not in tape.read_text("utf-8")
    asked = len(model.requests)
    with client(model, cassette=Cassette(tape)) as chat:
        replayed = roll_out(specs(), ChatPolicy(chat))
        assert chat.usage.calls == 0
    assert replayed == recorded
    assert len(model.requests) == asked


def test_a_request_that_was_not_recorded_is_said_so(tmp_path):
    with pytest.raises(NotRecordedError, match="holds no answer to request"):
        Cassette(tmp_path / "empty.jsonl").play({"messages": []})


def test_equal_requests_replay_their_answers_in_order(tmp_path):
    tape = tmp_path / "two.jsonl"
    recording = Cassette(tape, "record")
    for response in ("first", "second"):
        assert recording.play({"q": 1}) is None
        recording.add({"q": 1}, response)
    assert [Cassette(tape).play({"q": 1})] == ["first"]
    replaying = Cassette(tape)
    assert [replaying.play({"q": 1}) for _ in range(3)] == ["first", "second", "second"]
