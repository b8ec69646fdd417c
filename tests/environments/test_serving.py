import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import jsonschema
import psutil
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from agent_world.environments.serving import paths, serve_http
from tests.toy import TOOLS, toy_environment

TOY = toy_environment()
LEND = {"book_id": "B3", "member_id": "M1"}  # the library owns one copy of it
STDIO = StdioServerParameters(
    command=sys.executable,
    args=[
        "-c",
        "import anyio; from agent_world.environments.serving import serve_stdio;"
        "from tests.toy import toy_environment; anyio.run(serve_stdio, toy_environment())",
    ],
)


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
