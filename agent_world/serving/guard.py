"""The door of the HTTP application: what passes, what is refused with which status, and what is written down of it.

It stands around everything that is served, so that no route can forget a check. In this order: the Host and Origin
headers (a page of another site must not reach a server on loopback by rebinding a name), the token, the size of the
body. A refusal is JSON, ``{"error": {"code", "message"}}``; where MCP is spoken, an error of JSON-RPC.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from agent_world.errors import BadInputError
from agent_world.serving.access_log import Access, AccessLog, mark

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from agent_world.serving.metrics import Metrics

OPEN_PATH = "/health"
"""What may be asked without a token, and under any name: it says nothing but that the process answers."""
MCP_ENDING = "/mcp"
"""Every path that speaks MCP ends so."""
REFUSED = "agent_world.refused"
"""Key of the request's scope under which a route leaves the code of its refusal."""
SESSION_HEADER = "mcp-session-id"
LEAST_TOKEN = 16
_LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_NOT_IN_A_HOST = frozenset("@/?#\\")
_INVALID_REQUEST = -32600
_PATIENCE = 8
"""So many times the largest body is read of one that is too large."""
_METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Who may come in. `names` are the hosts that the server may be called by, in lower case and without a port.

    With `addresses`, any IP address will do as well: rebinding needs a name. Without a token everybody may come who
    reaches the port.

    Raises:
        BadInputError: the token is too short to be one, or cannot stand in a header.
    """

    names: Collection[str] = _LOOPBACK_NAMES
    addresses: bool = False
    token: str | None = field(default=None, repr=False)
    body_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        token = self.token
        if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
            why = f"not {LEAST_TOKEN} or more printable ASCII characters"
            raise BadInputError(
                "the token", why, "make one: python -c 'import secrets; print(secrets.token_urlsafe())'"
            )

    def knows(self, host: str | None) -> bool:
        """Whether the server may be called by this Host header, or host and port of an Origin."""
        if not host or set(host) & _NOT_IN_A_HOST:
            return False
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self.names or (self.addresses and _is_address(name))


def door_for(host: str, *, token: str | None = None, names: Collection[str] = (), body_bytes: int = 1 << 20) -> Door:
    """The door of a server that listens on `host`, a name or an address of this machine; `names` are its other names.

    Raises:
        BadInputError: others than this machine could come, and there is no token to keep them out; or it is none.
    """
    known = {name.lower() for name in names}
    if host in _LOOPBACK_NAMES or (_is_address(host) and ipaddress.ip_address(host).is_loopback):
        return Door(names=_LOOPBACK_NAMES | known | {host}, token=token, body_bytes=body_bytes)
    if token is None:
        why = "other machines could reach the server, and nothing would keep them out"
        raise BadInputError(f"host {host}", why, "put a token into AGENT_WORLD_TOKEN or into a file for --token-file")
    known |= {host.lower(), socket.gethostname().lower()}
    return Door(names=_LOOPBACK_NAMES | known, addresses=True, token=token, body_bytes=body_bytes)


class Refusal(Exception):
    """A request gets no further: its status, a code for programs and a sentence for people."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message, self.headers = status, code, message, headers or {}

    def response(self, path: str) -> JSONResponse:
        """The refusal as an answer; to those who speak MCP in its words, which their clients show them."""
        if path.endswith(MCP_ENDING):
            error = {"code": _INVALID_REQUEST, "message": self.message, "data": {"code": self.code}}
            return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, self.status, self.headers)
        body = {"error": {"code": self.code, "message": self.message}}
        return JSONResponse(body, self.status, self.headers)


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, door: Door, metrics: Metrics, log: AccessLog | None = None) -> None:
        self._app, self._door, self._metrics, self._log = app, door, metrics, log

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
            self._check(scope, headers)
            # Who needs no token must not make us keep what he sends either.
            open_to_all = scope["path"] == OPEN_PATH
            body = b"" if open_to_all else await _body(receive, headers, self._door.body_bytes)
            seen.received = len(body)
            await self._app(scope, _replay(body, receive), counted)
        except Refusal as refusal:
            seen.refused = refusal.code
            await refusal.response(scope["path"])(scope, receive, counted)
        finally:
            self._write_down(scope, headers, seen, time.monotonic() - began)

    def _check(self, scope: Scope, headers: Headers) -> None:
        if scope["path"] == OPEN_PATH:
            return
        if not self._door.knows(headers.get("host")):
            raise Refusal(421, "unknown_host", "This server does not go by the name in the Host header.")
        origin = headers.get("origin")
        if origin and not self._door.knows(origin.partition("://")[2]):
            raise Refusal(403, "foreign_origin", "Pages of other sites may not use this server.")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        expected = self._door.token
        if expected is not None and not (
            scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), expected.encode())
        ):
            message = "This server asks for its token: Authorization: Bearer <token>."
            raise Refusal(401, "unauthorised", message, {"WWW-Authenticate": "Bearer"})

    def _write_down(self, scope: Scope, headers: Headers, seen: _Seen, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        path = getattr(scope.get("route"), "path", "other")
        self._metrics.requests.add(path, method, str(seen.status))
        refused = seen.refused or scope.get(REFUSED)
        if refused is not None:
            self._metrics.refused.add(refused)
        if self._is_answer_of_its_own(headers, method):
            self._metrics.seconds.observe(seconds, path, method)
        if self._log is not None:
            session = headers.get(SESSION_HEADER)
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

    @staticmethod
    def _is_answer_of_its_own(headers: Headers, method: str) -> bool:
        """Not a stream that stays open as long as its client: its time says nothing about the server."""
        return not (method == "GET" and SESSION_HEADER in headers)


@dataclass(slots=True)
class _Seen:
    """What an answer was; 499 is what is commonly written for a client that went away before there was one."""

    status: int = 499
    received: int = 0
    sent: int = 0
    refused: str | None = None


async def _body(receive: Receive, headers: Headers, most: int) -> bytes:
    """The whole body.

    Raises:
        Refusal: it is too large, or ends before its end.
    """
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        if "expect" not in headers:
            await _read_on(receive, most)
        raise _too_large(most)
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refusal(400, "incomplete", "The request ended before its body did.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            await _read_on(receive, most)
            raise _too_large(most)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _read_on(receive: Receive, most: int) -> None:
    """Let a client say some more: while it sends it does not listen, and a refusal would be lost on it."""
    left = _PATIENCE * most
    while left > 0:
        message = await receive()
        if not message.get("more_body", False):
            return
        left -= len(message.get("body", b""))


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


def _too_large(most: int) -> Refusal:
    return Refusal(413, "too_large", f"The body of a request may have {most} bytes at most.", {"Connection": "close"})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
