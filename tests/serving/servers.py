"""The application on a free port of loopback, and programs that serve on their standard streams."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp import StdioServerParameters

from agent_world.serving.application import Application, paths
from agent_world.serving.http import serve_http
from agent_world.serving.mcp.offer import Offer


def stdio_server(offer: str) -> StdioServerParameters:
    """A server over stdio of the offer that this expression gives, in terms of `tests.serving.offers`."""
    program = (
        "import anyio; from agent_world.serving.mcp.stdio import serve_stdio; from tests.serving.offers import *;"
        f"anyio.run(serve_stdio, {offer})"
    )
    return StdioServerParameters(command=sys.executable, args=["-c", program])


@asynccontextmanager
async def http_server(*offers: Offer, **options) -> AsyncIterator[list[str]]:
    """The URLs of the offers, served meanwhile; `options` are those of `Application`."""
    origins: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: serve_http(Application(offers, **options), announce=origins.append))
        while not origins:
            await anyio.sleep(0.01)
        yield [f"{origins[0]}{path}" for path in paths(offers)]
        group.cancel_scope.cancel()


def over_both(make: Callable[[], Offer], expression: str) -> Callable[..., Callable[..., None]]:
    """Run a check that takes two client targets over stdio and over HTTP."""

    def decorate(check: Callable[..., Coroutine]) -> Callable[..., None]:
        @pytest.mark.parametrize("transport", ["stdio", "http"])
        def run(transport: str) -> None:
            async def main() -> None:
                if transport == "stdio":
                    await check(stdio_server(expression), stdio_server(expression))
                else:
                    async with http_server(make()) as (url,):
                        await check(url, url)

            anyio.run(main)

        return run

    return decorate
