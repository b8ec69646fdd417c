"""The guard of the HTTP application: what passes, what is refused with which status, and what is written down of it.

It stands around everything that is served, so that no route can forget a check: first the door, then the body.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from agent_world.serving.access_log import Access, AccessLog, mark
from agent_world.serving.body import read_body, replayed
from agent_world.serving.refusals import REFUSED, RefusedError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from agent_world.serving.door import Door
    from agent_world.serving.limits import ServingLimits
    from agent_world.serving.metrics import Metrics

OPEN_PATH = "/health"
"""What may be asked without a token, and under any name: it says nothing but that the process answers."""
SESSION_HEADER = "mcp-session-id"
_METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})


class Guard:
    """An ASGI application around another one."""

    def __init__(
        self, app: ASGIApp, *, door: Door, limits: ServingLimits, metrics: Metrics, log: AccessLog | None = None
    ) -> None:
        self._app, self._door, self._limits, self._metrics, self._log = app, door, limits, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what is no HTTP request (start and end of the application) goes through."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, headers = time.monotonic(), Headers(scope=scope)
        seen = _Seen()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
            elif message["type"] == "http.response.body":
                seen.sent += len(message.get("body", b""))
            await send(message)

        try:
            body = b""
            if scope["path"] != OPEN_PATH:  # who needs no token must not make us keep what he sends either
                self._door.check(headers)
                body = await read_body(receive, headers, self._limits)
            seen.received = len(body)
            await self._app(scope, replayed(body, receive), counted)
        except RefusedError as refused:
            scope[REFUSED] = refused.code
            await refused.response(scope["path"])(scope, receive, counted)
        finally:
            self._write_down(scope, headers, seen, time.monotonic() - began)

    def _write_down(self, scope: Scope, headers: Headers, seen: _Seen, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        path = getattr(scope.get("route"), "path", "other")
        self._metrics.requests.add(path, method, str(seen.status))
        refused = scope.get(REFUSED)
        if refused is not None:
            self._metrics.refused.add(refused)
        session = headers.get(SESSION_HEADER)
        # A stream stays open as long as its client: its time says nothing about the server.
        if not (method == "GET" and session):
            self._metrics.seconds.observe(seconds, path, method)
        if self._log is not None:
            client = scope.get("client")
            self._log.write(
                Access(
                    client=client[0] if client else "",
                    method=method,
                    path=path,
                    status=seen.status,
                    seconds=round(seconds, 6),
                    received=seen.received,
                    sent=seen.sent,
                    refused=refused,
                    session=mark(session) if session else None,
                )
            )


@dataclass(slots=True)
class _Seen:
    """What an answer was; 499 is what is commonly written for a client that went away before there was one."""

    status: int = 499
    received: int = 0
    sent: int = 0
