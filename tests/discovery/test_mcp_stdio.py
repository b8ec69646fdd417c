from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agent_world.discovery.themes.documents import read_theme
from agent_world.discovery.themes.mcp_stdio import McpConnector, McpError, McpServer, installed_servers, introspect
from agent_world.discovery.themes.pool import FOREIGN

SERVER = """
import json, sys, time
pages = json.loads(sys.argv[1])
print("Starting server v1 \\u2705", flush=True)
if sys.argv[2] == "die":
    sys.exit("no credentials")
if sys.argv[2] == "sleep":
    time.sleep(60)
for line in sys.stdin:
    ask = json.loads(line)
    if "id" not in ask:
        continue
    if ask["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "instructions": "be kind", "serverInfo": {"name": "s"}}
    else:
        page = int(ask["params"].get("cursor") or 0)
        result = {"tools": pages[page]}
        if page + 1 < len(pages):
            result["nextCursor"] = str(page + 1)
    print("not json either")
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": result}), flush=True)
"""


def server(tmp_path, pages, mode="run") -> McpServer:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    command = (sys.executable, str(script), json.dumps(pages), mode)
    return McpServer(name="s", version="1", command=command, summary="a server", licence="MIT")


def test_noise_and_pages_are_read_through(tmp_path):
    told = introspect(server(tmp_path, [[{"name": "b"}], [{"name": "a", "inputSchema": {"type": "object"}}]]))
    assert [tool["name"] for tool in told["tools"]] == ["a", "b"]
    assert told["instructions"] == "be kind"
    assert "Starting server v1 ✅" in told["noise"]


def test_a_server_that_dies_is_named_with_what_it_said(tmp_path):
    with pytest.raises(McpError, match=r"MCP server s: ended .*no credentials"):
        introspect(server(tmp_path, [[]], "die"))


def test_a_server_that_says_nothing_ends_in_time(tmp_path):
    with pytest.raises(McpError, match=r"no answer within 1 seconds"):
        introspect(server(tmp_path, [[]], "sleep"), timeout_s=1.0)


def test_a_server_that_is_not_there_is_one_clear_line(tmp_path):
    absent = McpServer(name="x", version="1", command=(str(tmp_path / "no"),), summary="", licence="")
    with pytest.raises(McpError, match="does not start"):
        introspect(absent)


def test_real_installed_servers_tell_their_tools_alike_twice():
    assert len(installed_servers(FOREIGN)) >= 3, "run `make install`"
    connector = McpConnector(FOREIGN)
    first, second = list(connector.documents()), list(McpConnector(FOREIGN).documents())
    assert first == second
    themes = {document.origin: read_theme(connector, document).theme for document in first}
    assert sum(theme is not None for theme in themes.values()) >= 3
    clock = themes["mcp_stdio:mcp-server-time"]
    assert {tool["name"] for tool in clock.tools} == {"get_current_time", "convert_time"}
    assert all(str(FOREIGN) not in document.data.decode() for document in first)


def test_every_installed_server_has_an_environment_or_npm_prefix_of_its_own():
    homes = []
    for server in installed_servers(FOREIGN):
        first, second, *_ = Path(server.command[-1]).relative_to(FOREIGN).parts
        homes.append((first, second) if first == "npm" else (first,))
    assert len(set(homes)) == len(homes) == 5
