"""The HTTP application: MCP at a path for each offer, episodes for trainers, health and metrics, behind one door."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_world.serving.guard import MCP_ENDING, OPEN_PATH, REFUSED, Door, Guard, Refusal
from agent_world.serving.limits import Places, ServingLimits
from agent_world.serving.mcp_path import McpPath
from agent_world.serving.metrics import CONTENT_TYPE, Gauge, Metrics

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from agent_world.serving.access_log import AccessLog
    from agent_world.serving.episodes import EpisodeRoutes
    from agent_world.serving.offer import Offer


def paths(offers: Sequence[Offer]) -> list[str]:
    """The URL path of each offer: `/mcp` for a single one, else one below its name."""
    return [MCP_ENDING] if len(offers) == 1 else [f"/{offer.name}{MCP_ENDING}" for offer in offers]


class Application:
    """An ASGI application; its lifespan must be run.

    Without a `door` it lets in whoever calls it by a name of loopback. Sessions of MCP count against
    ``limits.sessions`` all together; episodes for trainers have limits of their own.
    """

    def __init__(
        self,
        offers: Sequence[Offer],
        *,
        door: Door | None = None,
        limits: ServingLimits | None = None,
        metrics: Metrics | None = None,
        log: AccessLog | None = None,
        episodes: EpisodeRoutes | None = None,
    ) -> None:
        self._limits, self._metrics = limits or ServingLimits(), metrics or Metrics()
        places = Places(self._limits.sessions)
        self._mcp = [
            McpPath(path, offer, places, self._limits, self._metrics)
            for path, offer in zip(paths(offers), offers, strict=True)
        ]
        self._episodes = episodes
        self._metrics.add(Gauge("agent_world_mcp_sessions", "MCP sessions open now.", lambda: places.taken))
        if episodes is not None:
            live = episodes.live
            self._metrics.add(Gauge("agent_world_episodes", "Episodes for trainers live now.", lambda: live.count))
        inner = Starlette(
            routes=[
                *(Route(path.path, endpoint=path) for path in self._mcp),
                Route(OPEN_PATH, endpoint=_health),
                Route("/metrics", endpoint=self._show_metrics),
                *(episodes.routes if episodes is not None else ()),
            ],
            lifespan=self._running,
            exception_handlers={Refusal: _refused, HTTPException: self._not_served},
        )
        self._guard = Guard(inner, door or Door(), self._metrics, log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._guard(scope, receive, send)

    async def end_sessions(self) -> None:
        """End every MCP session, and with it the streams on which clients listen."""
        for path in self._mcp:
            await path.end_all()

    @asynccontextmanager
    async def _running(self, _app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for path in self._mcp:
                await stack.enter_async_context(path.running())
            if self._episodes is not None:
                await stack.enter_async_context(self._episodes.lifespan())
            yield

    async def _show_metrics(self, _request: Request) -> Response:
        return Response(self._metrics.render(), media_type=CONTENT_TYPE)

    async def _not_served(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = str(error.detail)
        if error.status_code == 404:
            message = f"There is nothing here; MCP is spoken at {', '.join(path.path for path in self._mcp)}."
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
        request.scope[REFUSED] = code
        body = {"error": {"code": code, "message": message}}
        return JSONResponse(body, error.status_code, dict(error.headers or {}))


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _refused(request: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    request.scope[REFUSED] = refusal.code
    return refusal.response(request.url.path)
