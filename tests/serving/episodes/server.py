"""The episode API on a real port of loopback, a client that holds every reply against its description, and faults."""

from __future__ import annotations

import http.client
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import httpx
import jsonschema
import uvicorn

from agent_world.environments.model import Environment
from agent_world.rollouts.loop import version_of
from agent_world.serving.application import Application
from agent_world.serving.door import Door
from agent_world.serving.episodes.openapi import document
from agent_world.serving.limits import Places, ServingLimits
from agent_world.serving.tasks import GivenTasks, TaskSource
from agent_world.tasks.model import Task
from agent_world.world import BoundTask
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING

DEADLINE_S = 60
LEND = {"book_id": "B5", "member_id": "M2"}  # what WRITING asks for


def bound(task: Task, environment: Environment = ENVIRONMENT) -> BoundTask:
    return BoundTask(version=version_of(task), task=task, environment=environment)


TASKS = GivenTasks([bound(READING), bound(WRITING), bound(PROGRAM)])


@dataclass(frozen=True)
class Server:
    url: str
    places: Places
    stop: Callable[[], None]


@contextmanager
def serving(
    tasks: TaskSource = TASKS,
    *,
    door: Door | None = None,
    around: Callable[[Any], Any] = lambda app: app,
    **limits: Any,
) -> Iterator[Server]:
    """A server in a thread of this process; `limits` are those of `ServingLimits`, `around` is put around it."""
    app = Application([], tasks=tasks, door=door, limits=ServingLimits(**limits))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(around(app), log_level="warning", lifespan="on", timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()

        def stop() -> None:
            server.should_exit = True
            thread.join(DEADLINE_S)
            assert not thread.is_alive()

        try:
            yield Server(f"http://127.0.0.1:{listening.getsockname()[1]}", app.places, stop)
        finally:
            stop()


class Http:
    """Sends plain requests; whatever comes back must be what the published description says of it."""

    def __init__(self, server: Server) -> None:
        self._http = httpx.Client(base_url=server.url, timeout=DEADLINE_S)

    def __enter__(self) -> Http:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        if body is not None:
            more["json"] = body
        response = self._http.request(method, path, **more)
        check(method, path, response)
        return response

    def open(self, task: str = "toy-read", **more: Any) -> str:
        """The id of a new episode."""
        response = self.send("POST", "/v1/episodes", {"episodes": [{"task": task, **more}]})
        assert response.status_code == 201, response.text
        return response.json()["episodes"][0]["id"]

    def call(self, id: str, n: int, tool: str, arguments: Any) -> httpx.Response:
        return self.send("POST", f"/v1/episodes/{id}/call", {"n": n, "tool": tool, "arguments": arguments})

    def answer(self, id: str, n: int, answer: Any) -> httpx.Response:
        return self.send("POST", f"/v1/episodes/{id}/answer", {"n": n, "answer": answer})


def check(method: str, path: str, response: httpx.Response) -> None:
    """See that `response` has a status that is described for it, and the shape that is described for the status."""
    api = document()
    for template, methods in api["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method.lower() in methods:
            described = methods[method.lower()]["responses"][str(response.status_code)]
            schema = described["content"]["application/json"]["schema"]
            jsonschema.validate(response.json(), {**schema, "components": api["components"]})


def refused(response: httpx.Response) -> tuple[int, str]:
    """The status and the code of a refusal, which is nothing but a code and a message."""
    [(key, error)] = response.json().items()
    assert (key, set(error)) == ("error", {"code", "message"})
    assert error["message"]
    return response.status_code, error["code"]


def together(*works: Callable[[], Any]) -> list[Any]:
    """What these give when they run in threads of their own, started at the same moment."""
    found: dict[int, Any] = {}
    start = threading.Barrier(len(works))

    def run(index: int) -> None:
        start.wait(DEADLINE_S)
        found[index] = works[index]()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    return [found[index] for index in range(len(works))]


Fault = Literal["lose the request", "lose the reply"]


class FaultyWire:
    """A relay in front of a server that loses what `fault` says, told how often it has seen the same request."""

    def __init__(self, server: Server, fault: Callable[[int], Fault | None]) -> None:
        self.seen: Counter[tuple[str, str, bytes]] = Counter()
        wire, port, lock = self, int(server.url.rpartition(":")[2]), threading.Lock()

        class Relay(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def relay(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                with lock:
                    wire.seen[self.command, self.path, body] += 1
                    lost = fault(wire.seen[self.command, self.path, body])
                self.close_connection = lost is not None
                if lost == "lose the request":
                    return
                further = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
                further.request(self.command, self.path, body or None, {"content-type": "application/json"})
                reply = further.getresponse()
                data = reply.read()
                further.close()
                if lost == "lose the reply":
                    return
                self.send_response(reply.status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = relay

            def log_message(self, *_: object) -> None:
                pass

        self._relay = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
        self.url = f"http://127.0.0.1:{self._relay.server_address[1]}"
        self._thread = threading.Thread(target=self._relay.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> FaultyWire:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._relay.shutdown()
        self._thread.join(DEADLINE_S)
        self._relay.server_close()
