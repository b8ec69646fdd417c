"""Clients of others, each as it comes from its package registry (`make test` puts them below .mcp/clients)."""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import jsonschema
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from agent_world.serving.door import Door
from tests.rollouts.cases import WRITING
from tests.serving.offers import TASKS, WITH_DOCUMENTS, attempt, library
from tests.serving.servers import http_server, stdio_server
from tests.toy import RULES_DOCUMENT, TOOLS

ROOT = Path(__file__).parents[3]
SCRIPTS = Path(__file__).parent / "clients"
TOKEN = "a-token-of-more-than-sixteen"
TRANSPORTS = pytest.mark.parametrize("transport", ["stdio", "http"])
CALLS = [
    ["search_books", {"title": "maps"}],
    ["get_book", {"book_id": "ZZ"}],
    ["get_book", {"book_id": 5}],
    ["tighten_rules", {}],
]


def installed(path: str) -> str:
    """A program or a folder of a client."""
    found = ROOT / ".mcp" / "clients" / path
    assert found.exists(), f"{found.relative_to(ROOT)} is missing: run `make test`"
    return str(found)


def typescript(wanted: dict) -> dict:
    return ran(["node", str(SCRIPTS / "typescript.cjs"), json.dumps(wanted)], NODE_PATH=installed("sdk/node_modules"))


def fast_mcp(wanted: dict) -> dict:
    return ran([installed("fastmcp/bin/python"), str(SCRIPTS / "fast_mcp.py"), json.dumps(wanted)])


def inspector(*arguments: str, home: Path) -> dict:
    program = installed("inspector/node_modules/.bin/mcp-inspector")
    return ran([program, "--cli", *arguments], HOME=str(home))


def ran(command: list[str], **environment: str) -> dict:
    done = subprocess.run(
        ["env", *(f"{name}={value}" for name, value in environment.items()), *command],
        capture_output=True, text=True, cwd=ROOT, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def against(transport: str, make, expression: str, use: Callable[[dict], dict]) -> dict:
    """What a client sees of this offer, given how to reach it."""
    if transport == "stdio":
        server = stdio_server(expression)
        return use({"command": server.command, "args": server.args})

    async def main() -> dict:
        async with http_server(make(), door=Door(token=TOKEN)) as (url,):
            target = {"url": url, "headers": {"Authorization": f"Bearer {TOKEN}"}}
            return await anyio.to_thread.run_sync(use, target)

    return anyio.run(main)


@TRANSPORTS
@pytest.mark.parametrize("client", [typescript, fast_mcp])
def test_a_client_of_others_sees_tools_results_documents_and_tasks(client, transport):
    seen = against(
        transport,
        partial(library, WITH_DOCUMENTS, tasks=TASKS),
        "library(WITH_DOCUMENTS, tasks=TASKS)",
        lambda target: client({**target, "calls": CALLS}),
    )
    assert seen["instructions"] == WITH_DOCUMENTS.description
    listed = {tool["name"]: tool for tool in seen["tools"]}
    for tool in TOOLS:
        assert listed[tool.name]["inputSchema"] == tool.input_schema
        assert listed[tool.name]["outputSchema"] == tool.output_schema
        assert listed[tool.name]["annotations"]["readOnlyHint"] == (not tool.writes)
        assert listed[tool.name]["annotations"]["destructiveHint"] == tool.writes
    found, refused, invalid, written = seen["results"]
    assert found["structuredContent"]["total"] == 1
    jsonschema.validate(found["structuredContent"], listed["search_books"]["outputSchema"])
    assert [failed["isError"] for failed in (refused, invalid)] == [True, True]
    assert "no book with id ZZ" in refused["content"][0]["text"]
    assert not written.get("isError")
    assert [resource["name"] for resource in seen["resources"]] == ["notices.md", "rules.yaml"]
    assert seen["texts"] == ["# Shorter loans\n", "loan_days: 7\n"]
    assert [prompt["name"] for prompt in seen["prompts"]] == ["toy-program", "toy-read", "toy-write"]
    assert seen["said"][2] == WRITING.instruction


@TRANSPORTS
@pytest.mark.parametrize("client", [typescript, fast_mcp])
def test_a_client_of_others_attempts_a_task(client, transport):
    calls = [
        *([call.tool, dict(call.arguments)] for call in WRITING.plan),
        ["submit_answer", dict(WRITING.answer)],
        ["submit_answer", dict(WRITING.answer)],
    ]
    seen = against(
        transport,
        partial(attempt, "toy-write"),
        "attempt('toy-write')",
        lambda target: client({**target, "calls": calls}),
    )
    assert WRITING.instruction in seen["instructions"]
    assert seen["said"] == [seen["instructions"]]
    assert seen["results"][-2]["structuredContent"] == {"outcome": "pass"}
    assert "episode_over" in seen["results"][-1]["content"][0]["text"]


def test_the_inspector_finds_nothing_wrong_over_http(tmp_path):
    def use(target: dict) -> dict:
        ask = partial(inspector, target["url"], "--header", f"Authorization: Bearer {TOKEN}", home=tmp_path)
        return {
            "tools": ask("--method", "tools/list", "--strict")["tools"],
            "called": ask("--method", "tools/call", "--tool-name", "get_book", "--tool-arg", "book_id=B3"),
            "read": ask("--method", "resources/read", "--uri", "document://toy-library/rules.yaml")["contents"],
            "said": ask("--method", "prompts/get", "--prompt-name", "toy-write")["messages"],
        }

    seen = against("http", partial(library, WITH_DOCUMENTS, tasks=TASKS), "", use)
    assert [tool["name"] for tool in seen["tools"]] == [tool.name for tool in WITH_DOCUMENTS.tools]
    assert seen["called"]["structuredContent"]["title"] == "Winter Maps"
    assert seen["read"][0]["text"] == RULES_DOCUMENT
    assert seen["said"][0]["content"]["text"] == WRITING.instruction


def test_the_inspector_calls_a_tool_over_stdio(tmp_path):
    server = stdio_server("library()")
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"library": {"command": server.command, "args": server.args}}}))
    called = inspector(
        "--config", str(servers), "--server", "library", "--method", "tools/call", "--tool-name", "get_book",
        "--tool-arg", "book_id=B3", home=tmp_path,
    )  # fmt: skip
    assert called["structuredContent"]["title"] == "Winter Maps"


def test_a_client_without_the_token_is_told_what_is_missing():
    async def main() -> None:
        async with http_server(library(), door=Door(token=TOKEN)) as (url,):
            for client in (typescript, fast_mcp):
                with pytest.raises(AssertionError, match="This server asks for its token"):
                    await anyio.to_thread.run_sync(client, {"url": url, "calls": []})
            with pytest.raises(ExceptionGroup) as told:
                async with Client(url):
                    pass
            assert told.group_contains(MCPError, match="This server asks for its token")

    anyio.run(main)
