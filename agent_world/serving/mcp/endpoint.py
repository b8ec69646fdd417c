"""One path of the HTTP application that speaks MCP: lets clients in, finds them again, and ends those that are idle.

Only protocol versions that open with `initialize` are spoken: from 2026-07-28 on, HTTP has no sessions, and a client
without one holds nothing to act on. Such a client is told so and falls back by itself.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers

from agent_world.serving.guard import SESSION_HEADER
from agent_world.serving.idle import LastUse, sweep_for_ever
from agent_world.serving.limits import Place, Places, ServingLimits
from agent_world.serving.mcp.offer import ClientState, Offer
from agent_world.serving.metrics import Metrics

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from starlette.types import Message, Receive, Scope, Send

_STATE = "agent_world.client_state"
"""Key of a request's scope under which the handlers find what its client holds."""


@dataclass(slots=True)
class _Client:
    state: ClientState
    place: Place
    last_use: LastUse


class McpEndpoint:
    """An ASGI endpoint; `running` must be entered before the first request, and ends every session when it is left."""

    def __init__(self, path: str, offer: Offer, places: Places, limits: ServingLimits, metrics: Metrics) -> None:
        self.path, self._offer, self._places, self._metrics = path, offer, places, metrics
        self._idle_s = limits.idle_s
        self._clients: dict[str, _Client] = {}
        server = offer.server(_state_of)
        server.middleware.insert(0, _only_with_a_session)
        # Results as plain JSON: nothing is ever sent while a call runs, and an event stream for each costs more than
        # most calls. Host and Origin and the size of bodies are the guard's business, the number of sessions ours.
        self._manager = StreamableHTTPSessionManager(
            server,
            json_response=True,
            session_idle_timeout=None,
            max_request_body_size=sys.maxsize,
            max_sessions=None,
        )

    @property
    def count(self) -> int:
        """How many sessions are open."""
        return len(self._clients)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve meanwhile."""
        try:
            async with self._manager.run(), anyio.create_task_group() as group:
                group.start_soon(sweep_for_ever, self._sweep, self._idle_s)
                try:
                    yield
                finally:
                    for client in self._clients.values():
                        client.state.stop()  # or calls that hang would hold up the end
                    group.cancel_scope.cancel()
        finally:
            for session in list(self._clients):
                await self._forget(session)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises:
            RefusedError: it would open a session, and there is no room.
        """
        session = Headers(scope=scope).get(SESSION_HEADER)
        client = self._clients.get(session or "")
        if session is None:
            await self._open(scope, receive, send)
        elif client is None:
            await self._manager.asgi_app(scope, receive, send)  # says that there is no such session
        else:
            await self._pass_on(session, client, scope, receive, send)

    async def end_all(self) -> None:
        """End every session now."""
        for session, client in list(self._clients.items()):
            client.state.stop()
            await self._end(session)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        [place] = self._places.take()
        client = _Client(self._offer.open(), place, LastUse(anyio.current_time))
        scope[_STATE] = client.state
        session: str | None = None

        async def watched(message: Message) -> None:
            nonlocal session
            if message["type"] == "http.response.start" and message["status"] < 400:
                session = Headers(raw=message["headers"]).get(SESSION_HEADER)
                if session is not None:
                    self._clients[session] = client
                    self._metrics.sessions.add(self._offer.name)
            await send(message)

        try:
            await self._manager.asgi_app(scope, receive, watched)
        finally:
            if session is None:
                place.leave()
                with anyio.CancelScope(shield=True):
                    await client.state.close()

    async def _pass_on(self, session: str, client: _Client, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_STATE] = client.state

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                if status == 404 or (scope["method"] == "DELETE" and status < 400):
                    await self._forget(session)  # before the answer: who hears it may count on the place
            await send(message)

        # A client that only listens (GET) asks for nothing: it may do so without end, and be idle.
        with client.last_use.now() if scope["method"] != "GET" else nullcontext():
            await self._manager.asgi_app(scope, receive, watched)

    async def _forget(self, session: str) -> None:
        client = self._clients.pop(session, None)
        if client is not None:
            try:
                with anyio.CancelScope(shield=True):
                    await client.state.close()
            finally:
                client.place.leave()

    async def _sweep(self) -> None:
        for session, client in list(self._clients.items()):
            if client.last_use.idle(self._idle_s):
                await self._end(session)

    async def _end(self, session: str) -> None:
        """Ask for the end of a session as its client would: the manager has no other way to be told."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "DELETE",
            "scheme": "http",
            "path": self.path,
            "raw_path": self.path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(SESSION_HEADER.encode(), session.encode())],
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_message: Message) -> None:
            pass

        await self._manager.asgi_app(scope, receive, send)
        await self._forget(session)


def _state_of(context: ServerRequestContext) -> ClientState:
    assert context.request is not None, "requests over HTTP carry their request"
    return context.request.scope[_STATE]


async def _only_with_a_session(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Refuse versions without sessions, naming those with."""
    if ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise MCPError(
            types.UNSUPPORTED_PROTOCOL_VERSION,
            "These environments keep state: open a session with `initialize`.",
            {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": ctx.protocol_version},
        )
    return await call_next(ctx)
