import re
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import anyio
import jsonschema
import psutil
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from agent_world.environments.serving import paths, published_name, serve_http, serve_stdio
from agent_world.errors import BadInputError
from agent_world.identity import VersionId
from tests.toy import TOOLS, toy_environment

TOY = toy_environment()
OTHER = replace(TOY, environment_id="another-library-of-the-city-0123ab")
LEND = {"book_id": "B3", "member_id": "M1"}  # the library owns one copy of it


def stdio_server(environments: str) -> StdioServerParameters:
    """A server over stdio of the environments that this expression gives."""
    program = (
        "import anyio; from agent_world.environments.serving import serve_stdio;"
        f"from tests.environments.test_serving import OTHER, TOY; anyio.run(serve_stdio, {environments})"
    )
    return StdioServerParameters(command=sys.executable, args=["-c", program])


STDIO = stdio_server("[TOY]")


@asynccontextmanager
async def http_server(*environments) -> AsyncIterator[list[str]]:
    urls: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: serve_http(environments or (TOY,), port=0, announce=urls.append))
        while len(urls) < max(len(environments), 1):
            await anyio.sleep(0.01)
        yield urls
        group.cancel_scope.cancel()


def over_both(check: Callable[..., Coroutine]) -> Callable[..., None]:
    """Run a check that takes two client targets over stdio and over HTTP."""

    @pytest.mark.parametrize("transport", ["stdio", "http"])
    def run(transport: str) -> None:
        async def main() -> None:
            if transport == "stdio":
                await check(STDIO, STDIO)
            else:
                async with http_server() as (url,):
                    await check(url, url)

        anyio.run(main)

    return run


def sessions_of_this_process() -> int:
    return sum(process.name() == "python3.11" for process in psutil.Process().children(recursive=True))


@over_both
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


@over_both
async def test_what_does_not_work_is_a_result_the_model_can_read(target, _):
    async with Client(target) as client:
        for name, arguments, words in [
            ("get_book", {"book_id": "ZZ"}, "There is no book with id ZZ."),
            ("get_book", {"book_id": 5}, "is not of type 'string'"),
            ("nothing", {}, "There is no tool called nothing."),
        ]:
            failed = await client.call_tool(name, arguments)
            assert failed.is_error
            assert words in failed.content[0].text


@over_both
async def test_two_clients_do_not_see_each_other(first_target, second_target):
    async with Client(first_target) as first, Client(second_target) as second:
        assert not (await first.call_tool("lend_book", LEND)).is_error
        assert (await first.call_tool("lend_book", LEND)).is_error, "the copy is out"
        lent = await second.call_tool("lend_book", LEND)
        assert not lent.is_error, "another client's world has its own copy"
        assert not (await second.call_tool("return_book", {"loan_id": lent.structured_content["loan_id"]})).is_error
        assert (await first.call_tool("lend_book", LEND)).is_error, "what the second did is not seen by the first"


@over_both
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


def test_a_session_ends_with_its_client():
    async def main() -> None:
        async with http_server() as (url,):
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
        async with http_server(TOY, other) as urls:
            assert [url.split("/", 3)[3] for url in urls] == ["toy-library/mcp", "other-library/mcp"]
            async with Client(urls[0]) as first, Client(urls[1]) as second:
                assert len((await first.list_tools()).tools) == len(TOOLS)
                assert len((await second.list_tools()).tools) == 1

    anyio.run(main)
    assert paths([TOY]) == ["/mcp"]


def test_over_stdio_the_tools_of_several_environments_are_told_apart_by_a_prefix():
    async def main() -> None:
        async with Client(stdio_server("[TOY, OTHER]")) as client:
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


@pytest.mark.parametrize("serve", [serve_stdio, partial(serve_http, port=0)])
def test_two_versions_of_one_environment_cannot_be_served_side_by_side(serve):
    with pytest.raises(BadInputError, match="environment toy-library: named twice"):
        anyio.run(serve, [TOY, replace(TOY, version=VersionId("toy-library@1"))])


def test_a_client_that_wants_no_session_is_told_what_to_speak():
    async def main() -> None:
        async with http_server() as (url,), Client(url, mode="2026-07-28") as client:
            with pytest.raises(MCPError, match="initialize") as refused:
                await client.call_tool("search_books", {"title": "maps"})
            assert "2025-11-25" in refused.value.data["supported"]

    anyio.run(main)


def test_a_page_of_another_site_cannot_reach_the_server():
    import httpx

    async def main() -> None:
        async with http_server() as (url,), httpx.AsyncClient() as client:
            answer = await client.post(url, headers={"Host": "evil.example"}, json={})
            assert answer.status_code == 421
            answer = await client.post(url, headers={"Origin": "https://evil.example"}, json={})
            assert answer.status_code == 403

    anyio.run(main)
