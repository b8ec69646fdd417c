"""The HTTP application: MCP at a path for each offer, episodes for trainers, health and metrics, behind one guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_world.serving.door import Door
from agent_world.serving.episodes.api import episode_routes
from agent_world.serving.episodes.registry import EpisodeRegistry
from agent_world.serving.guard import OPEN_PATH, Guard
from agent_world.serving.limits import Places, ServingLimits
from agent_world.serving.mcp.endpoint import McpEndpoint
from agent_world.serving.metrics import CONTENT_TYPE, Gauge, Metrics
from agent_world.serving.refusals import MCP_ENDING, REFUSED, Code, RefusedError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import Receive, Scope, Send

    from agent_world.sandbox import Sandbox
    from agent_world.serving.access_log import AccessLog
    from agent_world.serving.mcp.offer import Offer
    from agent_world.serving.tasks import TaskSource


def paths(offers: Sequence[Offer]) -> list[str]:
    """The URL path of each offer: `/mcp` for a single one, else one below its name."""
    return [MCP_ENDING] if len(offers) == 1 else [f"/{offer.name}{MCP_ENDING}" for offer in offers]


class Application:
    """An ASGI application; its lifespan must be run.

    With `tasks` it also serves episodes of them to trainers, whose tools run in `sandbox`. Without a `door` it lets in
    whoever calls it by a name of loopback. `places` counts the sessions of both kinds against ``limits.sessions``.
    """

    def __init__(
        self,
        offers: Sequence[Offer],
        *,
        tasks: TaskSource | None = None,
        sandbox: Sandbox | None = None,
        door: Door | None = None,
        limits: ServingLimits | None = None,
        metrics: Metrics | None = None,
        log: AccessLog | None = None,
    ) -> None:
        self.limits, self._metrics = limits or ServingLimits(), metrics or Metrics()
        self.places = Places(self.limits.sessions)
        self._endpoints = [
            McpEndpoint(path, offer, self.places, self.limits, self._metrics)
            for path, offer in zip(paths(offers), offers, strict=True)
        ]
        self._metrics.add(Gauge("agent_world_mcp_sessions", "MCP sessions open now.", self._mcp_sessions))
        routes: list[BaseRoute] = [
            *(Route(endpoint.path, endpoint=endpoint) for endpoint in self._endpoints),
            Route(OPEN_PATH, endpoint=_health),
            Route("/metrics", endpoint=self._show_metrics),
        ]
        self._episodes: EpisodeRegistry | None = None
        if tasks is not None:
            episodes = self._episodes = EpisodeRegistry(self.places, self.limits, sandbox=sandbox)
            self._metrics.add(Gauge("agent_world_episodes", "Episodes for trainers live now.", lambda: episodes.count))
            routes += episode_routes(tasks, episodes)
        inner = Starlette(
            routes=routes,
            lifespan=self._running,
            exception_handlers={RefusedError: _refused, HTTPException: self._not_served},
        )
        self._guard = Guard(inner, door=door or Door(), limits=self.limits, metrics=self._metrics, log=log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._guard(scope, receive, send)

    async def end_sessions(self) -> None:
        """End every MCP session, and with it the streams on which clients listen."""
        for endpoint in self._endpoints:
            await endpoint.end_all()

    @asynccontextmanager
    async def _running(self, _app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for endpoint in self._endpoints:
                await stack.enter_async_context(endpoint.running())
            if self._episodes is not None:
                await stack.enter_async_context(self._episodes.running())
            yield

    def _mcp_sessions(self) -> int:
        return sum(endpoint.count for endpoint in self._endpoints)

    async def _show_metrics(self, _request: Request) -> Response:
        return Response(self._metrics.render(), media_type=CONTENT_TYPE)

    async def _not_served(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        codes: dict[int, Code] = {404: "no_such_path", 405: "method_not_allowed"}
        message = str(error.detail)
        if error.status_code == 404:
            spoken = ", ".join(endpoint.path for endpoint in self._endpoints)
            message = f"There is nothing here; MCP is spoken at {spoken}."
        code = codes.get(error.status_code, "http_error")
        return await _refused(request, RefusedError(error.status_code, code, message, error.headers))


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _refused(request: Request, refused: Exception) -> Response:
    assert isinstance(refused, RefusedError)
    request.scope[REFUSED] = refused.code
    return refused.response(request.url.path)
