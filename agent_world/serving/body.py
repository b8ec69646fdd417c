"""The body of a request: whole, not too large and not too late, or refused. No other place looks at these limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from agent_world.serving.refusals import RefusedError

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Message, Receive

    from agent_world.serving.limits import ServingLimits

_PATIENCE = 8
"""So many times the largest body is read of one that is too large."""
_CLOSE = {"Connection": "close"}


async def read_body(receive: Receive, headers: Headers, limits: ServingLimits) -> bytes:
    """The whole body.

    Raises:
        RefusedError: it is too large, not there in time, or ends before its end.
    """
    try:
        with anyio.fail_after(limits.body_s):
            return await _read(receive, headers, limits.body_bytes)
    except TimeoutError:
        message = f"The body of a request must be there within {limits.body_s:g} seconds."
        raise RefusedError(408, "too_slow", message, _CLOSE) from None


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


async def _read(receive: Receive, headers: Headers, most: int) -> bytes:
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        if "expect" not in headers:
            await _read_on(receive, most)
        raise _too_large(most)
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise RefusedError(400, "incomplete", "The request ended before its body did.")
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


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, "too_large", f"The body of a request may have {most} bytes at most.", _CLOSE)
