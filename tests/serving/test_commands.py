import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx
import psutil
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from agent_world.errors import BadInputError
from dagster_project.cli import env, task
from tests.dagster_project.test_task_command import lake  # noqa: F401 - a fixture
from tests.rollouts.cases import WRITING

COMMAND = str(Path(sys.executable).with_name("agent-world"))
TOKEN = "a-token-of-more-than-sixteen"


@contextmanager
def served(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen, str]]:
    """The command on a free port, and the URL that it printed first; killed at last if nobody ended it."""
    command = [COMMAND, *arguments, "--transport", "http", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    try:
        assert process.stderr is not None
        yield process, process.stderr.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_a_task_is_served_over_stdio_from_instruction_to_outcome(lake):  # noqa: F811
    async def main() -> None:
        server = StdioServerParameters(command=COMMAND, args=["task", "serve", "toy-write", "--lake", lake])
        async with Client(server) as client:
            assert client.instructions.startswith(WRITING.instruction)
            for call in WRITING.plan:
                await client.call_tool(call.tool, call.arguments)
            judged = await client.call_tool("submit_answer", WRITING.answer)
            assert judged.structured_content == {"outcome": "pass"}

    anyio.run(main)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_over_http_the_command_serves_and_logs_and_leaves_nothing_behind_however_it_ends(lake, tmp_path, number):  # noqa: F811
    log = tmp_path / "access.jsonl"
    with served("task", "serve", "toy-read", "--lake", lake, "--access-log", str(log)) as (process, url):

        async def main() -> None:
            async with Client(url) as client:
                assert not (await client.call_tool("get_book", {"book_id": "B3"})).is_error
                children = psutil.Process(process.pid).children(recursive=True)
                assert children, "a session is live"
                process.send_signal(number)
                code = await anyio.to_thread.run_sync(process.wait, 60)
                assert code == {signal.SIGTERM: 0, signal.SIGINT: 130, signal.SIGKILL: -9}[number]
                assert psutil.wait_procs(children, timeout=20)[1] == []

        try:
            anyio.run(main)
        except* (httpx.HTTPError, OSError):
            pass  # the client misses its server when it says goodbye
        assert process.stderr.read().strip() in ("", "Interrupted; nothing is lost.")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"POST"} <= {line["method"] for line in lines}
    assert {line["path"] for line in lines} == {"/mcp"}


def test_a_server_may_open_as_many_files_as_its_host_allows(lake):  # noqa: F811
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        with served("env", "serve", "toy", "--lake", lake) as (process, _):
            found, _ = psutil.Process(process.pid).rlimit(psutil.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found == (1 << 20 if hard == resource.RLIM_INFINITY else hard)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_over_stdio_a_signal_ends_the_command_although_its_client_says_nothing(lake, number):  # noqa: F811
    command = [COMMAND, "env", "serve", "toy", "--lake", lake]
    opening = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    call = {"name": "get_book", "arguments": {"book_id": "B3"}}
    said = [
        opening,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for message in said:
            process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        assert "Winter Maps" in [process.stdout.readline() for _ in range(2)][1]
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.send_signal(number)
        assert process.wait(60) == -number
        assert psutil.wait_procs(children, timeout=20)[1] == []


def test_other_machines_are_served_with_a_token_only(lake, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.delenv("AGENT_WORLD_TOKEN", raising=False)
    open_to_all = ["serve", "toy", "--lake", lake, "--transport", "http", "--host", "0.0.0.0", "--port", "0"]
    with pytest.raises(BadInputError, match=r"AGENT_WORLD_TOKEN .*--token-file"):
        CliRunner().invoke(env.command, open_to_all, catch_exceptions=False)
    short = tmp_path / "short"
    short.write_text("short\n")
    with pytest.raises(BadInputError, match="the token"):
        CliRunner().invoke(env.command, [*open_to_all, "--token-file", str(short)], catch_exceptions=False)


@pytest.mark.parametrize("way", ["file", "variable"])
def test_a_token_is_asked_of_every_client_and_shown_to_nobody(lake, tmp_path, way):  # noqa: F811
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    arguments = ["env", "serve", "toy", "--lake", lake, "--host", "0.0.0.0"]
    given = {"AGENT_WORLD_TOKEN": TOKEN} if way == "variable" else {}
    if way == "file":
        arguments += ["--token-file", str(file)]
    with served(*arguments, **given) as (process, url):
        here = f"http://127.0.0.1:{url.split(':')[2]}"

        async def main() -> None:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx.AsyncClient(base_url=here.removesuffix("/mcp")) as client:
                for path in ("/mcp", "/metrics", "/v1/tasks"):
                    assert (await client.get(path)).status_code == 401
                assert (await client.get("/health")).status_code == 200
                assert "toy-read" in (await client.get("/v1/tasks", headers=headers)).text
                assert "agent_world_episodes 0" in (await client.get("/metrics", headers=headers)).text
            assert "toy-write" in await prompts_with(here, headers)

        anyio.run(main)
        assert TOKEN not in " ".join(psutil.Process(process.pid).cmdline())
        process.send_signal(signal.SIGTERM)
        assert TOKEN not in process.communicate(timeout=60)[1]


async def prompts_with(url: str, headers: dict[str, str]) -> list[str]:
    import httpx2

    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        return [prompt.name for prompt in (await client.list_prompts()).prompts]


def test_without_a_name_every_accepted_environment_is_served_over_http(lake):  # noqa: F811
    with served("env", "serve", "--lake", lake) as (_, url):
        assert url.endswith("/mcp")
        assert httpx.get(url.replace("/mcp", "/health")).json() == {"status": "ok"}
    refused = CliRunner().invoke(env.command, ["serve", "--lake", lake])
    assert refused.exit_code == 2
    assert "Name the environments" in refused.stderr


def test_the_limits_of_the_command_hold_for_trainers_too(lake):  # noqa: F811
    with served("env", "serve", "toy", "--lake", lake, "--max-sessions", "1", "--max-calls", "1") as (_, url):
        with httpx.Client(base_url=url.removesuffix("/mcp"), timeout=60) as client:
            asked = {"episodes": [{"task": "toy-read"}]}
            [opened] = client.post("/v1/episodes", json=asked).json()["episodes"]
            assert client.post("/v1/episodes", json=asked).status_code == 503
            path, call = f"/v1/episodes/{opened['id']}/call", {"tool": "get_book", "arguments": {"book_id": "B3"}}
            assert client.post(path, json={"n": 1, **call}).json()["status"] == "ok"
            refused = client.post(path, json={"n": 2, **call})
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "call_limit")


def test_what_is_for_http_is_not_silently_ignored_over_stdio(lake):  # noqa: F811
    for command, name in ((env.command, "toy"), (task.command, "toy-read")):
        refused = CliRunner().invoke(command, ["serve", name, "--lake", lake, "--max-sessions", "3"])
        assert refused.exit_code == 2
        assert "--max-sessions is for --transport http" in refused.stderr
