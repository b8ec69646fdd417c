import json
import re
from dataclasses import replace
from functools import partial

import anyio
import jsonschema
import psutil
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from agent_world.environments.errors import UnusableEnvironmentError
from agent_world.environments.model import PublicTool
from agent_world.errors import BadInputError
from agent_world.identity import VersionId
from agent_world.rollouts.model import Observation
from agent_world.serving.application import paths
from agent_world.serving.limits import ServingLimits
from agent_world.serving.mcp.environments import environment_offer
from agent_world.serving.mcp.tools import PublishedTool, published_name
from agent_world.serving.tasks import GivenTasks
from tests.serving.offers import ODD, OTHER, TASKS, TOY, WITH_DOCUMENTS, library
from tests.serving.servers import http_server, over_both, stdio_server
from tests.toy import RULES_DOCUMENT, TOOLS

LEND = {"book_id": "B3", "member_id": "M1"}  # the library owns one copy of it
over_toy = over_both(library, "library()")
over_odd = over_both(partial(library, ODD), "library(ODD)")
over_documents = over_both(partial(library, WITH_DOCUMENTS), "library(WITH_DOCUMENTS)")
over_tasks = over_both(partial(library, tasks=TASKS), "library(tasks=TASKS)")


def sessions_of_this_process() -> int:
    return sum(process.name() == "python3.11" for process in psutil.Process().children(recursive=True))


@over_toy
async def test_the_official_client_lists_and_calls(target, _):
    async with Client(target) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(listed) == [tool.name for tool in TOOLS]
        for tool in TOOLS:
            published = listed[tool.name]
            assert published.description == tool.description
            assert published.input_schema == tool.input_schema
            assert published.output_schema == tool.output_schema
            assert published.annotations.read_only_hint == (not tool.writes)
            assert published.annotations.destructive_hint == tool.writes
        found = await client.call_tool("search_books", {"title": "maps"})
        assert not found.is_error
        assert found.structured_content == {"items": [{"book_id": "B3", "title": "Winter Maps"}], "total": 1}
        jsonschema.validate(found.structured_content, listed["search_books"].output_schema)


@over_toy
async def test_what_does_not_work_is_a_result_the_model_can_read(target, _):
    async with Client(target) as client:
        for name, arguments, words in [
            ("get_book", {"book_id": "ZZ"}, "There is no book with id ZZ."),
            ("get_book", {"book_id": 5}, "is not of type 'string'"),
            ("nothing", {}, "There is no tool called nothing."),
        ]:
            failed = await client.call_tool(name, arguments)
            assert failed.is_error
            assert failed.structured_content is None, "no output schema speaks of errors"
            assert words in failed.content[0].text


@over_odd
async def test_a_result_that_its_output_schema_forbids_is_an_error_and_so_has_no_structure(target, _):
    async with Client(target) as client:
        for name, words in [
            ("liar", "breaks the tool's own output schema"),
            ("deep", "deep"),
            ("broken", "KeyError"),
        ]:
            failed = await client.call_tool(name, {})
            assert failed.is_error
            assert failed.structured_content is None
            assert words in failed.content[-1].text
        assert json.loads((await client.call_tool("liar", {})).content[0].text) == {"text": 5}, "as in any rollout"


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        ({"type": "array", "items": {"type": "string"}}, ["Iris", "Tom"], [5]),
        ({"type": ["string", "null"]}, None, 5),
        (
            {
                "type": "array",
                "items": {"$ref": "#/$defs/one"},
                "$defs": {"one": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
            },
            [{"n": 1}],
            [{}],
        ),
    ],
)
def test_a_result_that_is_no_object_is_published_as_the_field_of_one(schema, value, wrong):
    tool = PublishedTool(
        "odd", PublicTool(name="odd", description="", input_schema={}, output_schema=schema, writes=False)
    )
    published = tool.listed.output_schema
    assert published["type"] == "object"
    result = tool.result(Observation(status="ok", value=value))
    assert result.structured_content == {"result": value}
    jsonschema.validate(result.structured_content, published)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"result": wrong}, published)


@over_toy
async def test_two_clients_do_not_see_each_other(first_target, second_target):
    async with Client(first_target) as first, Client(second_target) as second:
        assert not (await first.call_tool("lend_book", LEND)).is_error
        assert (await first.call_tool("lend_book", LEND)).is_error, "the copy is out"
        lent = await second.call_tool("lend_book", LEND)
        assert not lent.is_error, "another client's world has its own copy"
        assert not (await second.call_tool("return_book", {"loan_id": lent.structured_content["loan_id"]})).is_error
        assert (await first.call_tool("lend_book", LEND)).is_error, "what the second did is not seen by the first"


@over_toy
async def test_many_calls_at_once_are_all_answered(target, _):
    async with Client(target) as client:
        seen = []

        async def ask(book: str) -> None:
            seen.append((book, (await client.call_tool("get_book", {"book_id": book})).structured_content["book_id"]))

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(ask, f"B{number % 6 + 1}")
        assert len(seen) == 20
        assert all(asked == got for asked, got in seen)


@over_documents
async def test_documents_that_tools_work_with_are_resources_and_show_what_was_written(first_target, second_target):
    async with Client(first_target) as client, Client(second_target) as other:
        [rules] = (await client.list_resources()).resources
        assert (rules.uri, rules.name, rules.title) == ("document://toy-library/rules.yaml", "rules.yaml", "Loan rules")
        assert (rules.mime_type, rules.size) == ("application/yaml", len(RULES_DOCUMENT))
        assert (await client.read_resource(rules.uri)).contents[0].text == RULES_DOCUMENT
        await client.call_tool("tighten_rules", {})
        assert (await client.read_resource(rules.uri)).contents[0].text == "loan_days: 7\n"
        notices, rules = (await client.list_resources()).resources
        assert (notices.name, notices.mime_type, notices.title) == ("notices.md", "text/markdown", None)
        assert rules.size == len("loan_days: 7\n")
        assert (await other.read_resource(rules.uri)).contents[0].text == RULES_DOCUMENT, "another client's own"


@pytest.mark.parametrize(
    "uri",
    [
        "document://toy-library/salaries.csv",  # there, but no tool would show it
        "document://toy-library/notices.md",  # not there yet
        "document://toy-library/../data.sqlite",
        "document://toy-library/",
        "document://other/rules.yaml",
        "file:///etc/passwd",
        "document://[",
    ],
)
def test_nothing_else_is_a_resource(uri):
    async def main() -> None:
        async with http_server(library(WITH_DOCUMENTS)) as (url,), Client(url) as client:
            with pytest.raises(MCPError, match="There is no resource"):
                await client.read_resource(uri)

    anyio.run(main)


@over_tasks
async def test_tasks_of_the_environment_are_prompts(target, _):
    async with Client(target) as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert sorted(prompts) == ["toy-program", "toy-read", "toy-write"]
        [message] = (await client.get_prompt("toy-write")).messages
        assert (message.role, message.content.text) == ("user", TASKS.task("toy-write").task.instruction)
        assert prompts["toy-write"].description == message.content.text
        with pytest.raises(MCPError, match="no prompt called toy-none"):
            await client.get_prompt("toy-none")


def test_many_prompts_come_in_pages_and_those_of_other_environments_not_at_all():
    entries = TASKS.entries()
    many = [replace(entries[0], task=VersionId(f"toy/graph-{number:03}@0")) for number in range(150)]
    foreign = replace(entries[0], task=VersionId("foreign@0"), environment=VersionId("elsewhere@0"))

    class Source:
        def entries(self):
            return [*many, foreign]

    async def main() -> None:
        async with http_server(library(tasks=Source())) as (url,), Client(url) as client:
            first = await client.list_prompts()
            second = await client.list_prompts(cursor=first.next_cursor)
            names = [prompt.name for page in (first, second) for prompt in page.prompts]
            assert names == [f"toy/graph-{number:03}" for number in range(150)]
            assert second.next_cursor is None
            with pytest.raises(MCPError, match="cursor"):
                await client.list_prompts(cursor="next")

    anyio.run(main)


def test_a_session_ends_with_its_client():
    async def main() -> None:
        async with http_server(library()) as (url,):
            async with Client(url) as client:
                await client.call_tool("search_books", {"title": "maps"})
                before = sessions_of_this_process()
            with anyio.fail_after(20):
                while sessions_of_this_process() >= before:
                    await anyio.sleep(0.05)

    anyio.run(main)


def test_several_environments_have_a_path_each():
    other = replace(TOY, environment_id="other-library", tools=TOOLS[:1])

    async def main() -> None:
        async with http_server(library(), library(other)) as urls:
            assert [url.split("/", 3)[3] for url in urls] == ["toy-library/mcp", "other-library/mcp"]
            async with Client(urls[0]) as first, Client(urls[1]) as second:
                assert len((await first.list_tools()).tools) == len(TOOLS)
                assert len((await second.list_tools()).tools) == 1

    anyio.run(main)
    assert paths([library()]) == ["/mcp"]


def test_over_stdio_the_tools_of_several_environments_are_told_apart_by_a_prefix():
    async def main() -> None:
        async with Client(stdio_server("environment_offer([TOY, OTHER])")) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [f"{prefix}__{tool.name}" for prefix in ("toy-library", "another-0123ab") for tool in TOOLS]
            assert not (await client.call_tool("toy-library__lend_book", LEND)).is_error
            assert (await client.call_tool("toy-library__lend_book", LEND)).is_error, "the copy is out"
            lent = await client.call_tool("another-0123ab__lend_book", LEND)
            assert not lent.is_error, "each environment has a session of its own"
            for name in ("lend_book", "toy-library__nothing", "another__lend_book"):
                assert "There is no tool called" in (await client.call_tool(name, LEND)).content[0].text

    anyio.run(main)


@pytest.mark.parametrize("key", ["amazon-data-lifecycle-manager-94802d", "omdb-service-in-the-city-of-rome-322f7e"])
def test_a_tool_among_several_environments_has_a_name_that_model_providers_take(key):
    longest = published_name(replace(TOY, environment_id=key), "t" * 48)
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", longest)
    assert longest.split("__") == [f"{key[:7].rstrip('-')}{key[-7:]}", "t" * 48]


def test_two_versions_of_one_environment_cannot_be_served_side_by_side():
    with pytest.raises(BadInputError, match="environment toy-library: named twice"):
        environment_offer([TOY, replace(TOY, version=VersionId("toy-library@1")), OTHER])


def test_a_client_that_wants_no_session_is_told_what_to_speak():
    async def main() -> None:
        async with http_server(library()) as (url,), Client(url, mode="2026-07-28") as client:
            with pytest.raises(MCPError, match="initialize") as refused:
                await client.call_tool("search_books", {"title": "maps"})
            assert "2025-11-25" in refused.value.data["supported"]

    anyio.run(main)


def test_a_fault_of_the_server_is_called_one_and_tells_nothing_more(caplog):
    unusable = replace(TOY, runtime="somebody-elses")

    async def main() -> None:
        async with http_server(library(unusable)) as (url,), Client(url) as client:
            with pytest.raises(MCPError, match="through no fault of this request") as fault:
                await client.call_tool("search_books", {"title": "maps"})
            assert "somebody-elses" not in str(fault.value)

    anyio.run(main)
    assert any(record.exc_info and record.exc_info[0] is UnusableEnvironmentError for record in caplog.records)


def test_documents_that_are_read_count_as_calls():
    async def main() -> None:
        offer = library(WITH_DOCUMENTS, limits=ServingLimits(calls=3))
        async with http_server(offer) as (url,), Client(url) as client:
            [rules] = (await client.list_resources()).resources
            for _ in range(2):
                await client.read_resource(rules.uri, cache_mode="bypass")
            for ask in (partial(client.read_resource, rules.uri), client.list_resources):
                with pytest.raises(MCPError, match="has 3 calls") as refused:
                    await ask(cache_mode="bypass")
                assert refused.value.data == {"code": "call_limit"}
            refused = await client.call_tool("search_books", {"title": "maps"})
            assert refused.is_error
            assert "call_limit" in refused.content[0].text

    anyio.run(main)


def test_prompts_of_two_versions_of_a_task_are_told_apart():
    older, newer = (replace(TASKS.task("toy-read"), version=VersionId(f"toy-read@{n}")) for n in (1, 2))
    tasks = GivenTasks([older, newer, TASKS.task("toy-write")])

    async def main() -> None:
        async with http_server(library(tasks=tasks)) as (url,), Client(url) as client:
            names = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert names == ["toy-read@1", "toy-read@2", "toy-write"]
            for name in names:
                assert (await client.get_prompt(name)).messages
            with pytest.raises(MCPError, match="no prompt called toy-read"):
                await client.get_prompt("toy-read")

    anyio.run(main)


def test_a_session_has_so_many_calls():
    async def main() -> None:
        async with http_server(library(limits=ServingLimits(calls=2))) as (url,):
            async with Client(url) as client:
                for _ in range(2):
                    assert not (await client.call_tool("search_books", {"title": "maps"})).is_error
                refused = await client.call_tool("search_books", {"title": "maps"})
                assert refused.is_error
                assert "call_limit" in refused.content[0].text
            async with Client(url) as client:
                assert not (await client.call_tool("search_books", {"title": "maps"})).is_error

    anyio.run(main)
