import csv
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters

from agent_world import world
from agent_world.errors import BadInputError
from dagster_project.cli.env import command
from tests.dagster_project.test_task_command import lake  # noqa: F401 - a fixture
from tests.rollouts.cases import ENVIRONMENT
from tests.toy import TOOLS
from tests.toy_lake import save_toy

COMMAND = str(Path(sys.executable).with_name("agent-world"))
SEARCH = {"title": "maps"}


def env(lake, *arguments, **options):  # noqa: F811
    return CliRunner().invoke(command, [*arguments, "--lake", lake], **options)


def test_environments_are_listed(lake):  # noqa: F811
    (row,) = json.loads(env(lake, "list", "--format", "json").stdout)
    assert (row["environment"], row["title"]) == ("toy-library", "City library")
    assert "toy-library" in env(lake, "list").stdout


def test_an_environment_is_shown_with_its_tables_and_tools(lake):  # noqa: F811
    shown = json.loads(env(lake, "show", "toy", "--format", "json").stdout)
    assert shown["tables"]["books"] == "6 rows, 6 columns"
    assert shown["documents"] == ["rules.yaml"]
    assert {tool["tool"]: tool["writes"] for tool in shown["tools"]} == {tool.name: tool.writes for tool in TOOLS}
    schemas = {tool["tool"]: (tool["input_schema"], tool["output_schema"]) for tool in shown["tools"]}
    assert schemas == {tool.name: (tool.input_schema, tool.output_schema) for tool in TOOLS}


def test_the_table_of_tools_shows_the_type_of_each_argument(lake):  # noqa: F811
    assert "book_id: string, member_id: string" in env(lake, "show", "toy").stdout


def test_a_tool_that_fails_some_of_its_tests_is_marked(tmp_path):
    uri = str(tmp_path / "lake")
    with world.open(uri, create=True).begin("toy", derivation="d0") as batch:
        _, tools = save_toy(batch, ENVIRONMENT)
        for tool in tools:
            batch.observe(tool, {"accepted": True, "accuracy": 0.75 if tool == tools[1] else 1.0, "tests": 4})
    shown = json.loads(env(uri, "show", "toy", "--format", "json").stdout)["tools"]
    accuracies = {tool["tool"]: (tool["accuracy"], tool["tests"]) for tool in shown}
    assert accuracies == {tool.name: (0.75 if tool is TOOLS[1] else 1.0, 4) for tool in TOOLS}
    lines = env(uri, "show", "toy").stdout.splitlines()
    assert [line.split()[0] for line in lines if "1 of 4 tests" in line] == [TOOLS[1].name]


def test_an_environment_as_csv_is_one_table(lake):  # noqa: F811
    rows = list(csv.DictReader(io.StringIO(env(lake, "show", "toy", "--format", "csv").stdout)))
    assert all(row.keys() == {"part", "value"} for row in rows)
    [lending] = [json.loads(row["value"]) for row in rows if row["part"] == "tool lend_book"]
    assert lending["input_schema"]["required"] == ["book_id", "member_id"]


@pytest.mark.parametrize("name", ["show", "call", "serve"])
def test_help_says_that_an_environment_may_be_named_by_the_start_of_its_key(name):
    assert "ENV is a key or a unique start of one" in CliRunner().invoke(command, [name, "--help"]).stdout


def test_a_call_shows_the_result_and_what_it_changed(lake):  # noqa: F811
    done = env(lake, "call", "toy", "lend_book", '{"book_id": "B1", "member_id": "M1"}')
    printed = json.loads(done.stdout)
    assert (done.exit_code, printed["status"], printed["value"]["status"]) == (0, "ok", "out")
    assert printed["changed"]["loans"]["added"][0]["loan_id"] == "$1"
    refused = env(lake, "call", "toy", "get_book", '{"book_id": "ZZ"}')
    assert (refused.exit_code, json.loads(refused.stdout)["status"]) == (1, "refused")


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_arguments_that_are_no_object_are_refused_in_one_line(lake, text):  # noqa: F811
    with pytest.raises(BadInputError, match="arguments"):
        env(lake, "call", "toy", "get_book", text, catch_exceptions=False)


def test_an_environment_that_is_named_twice_is_one_clear_line(lake):  # noqa: F811
    with pytest.raises(BadInputError, match="environment toy-library: named twice"):
        env(lake, "serve", "toy", "toy-library", catch_exceptions=False)


def test_the_command_serves_the_official_client_over_stdio(lake):  # noqa: F811
    async def main() -> None:
        server = StdioServerParameters(command=COMMAND, args=["env", "serve", "toy", "--lake", lake])
        async with Client(server) as client:
            assert (await client.call_tool("search_books", SEARCH)).structured_content["total"] == 1

    anyio.run(main)


def test_the_command_serves_the_official_client_over_http_and_stops_when_asked(lake):  # noqa: F811
    server = [COMMAND, "env", "serve", "toy", "--transport", "http", "--port", "0", "--lake", lake]
    server += ["--access-log", "/dev/null"]
    with subprocess.Popen(server, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().strip()

        async def main() -> None:
            async with Client(url) as client:
                assert (await client.call_tool("search_books", SEARCH)).structured_content["total"] == 1

        anyio.run(main)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)
        assert process.stderr.read().strip() in ("", "Interrupted; nothing is lost.")
