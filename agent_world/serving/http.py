"""Runs the application on a port until it is asked to end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agent_world.errors import BadInputError
from agent_world.serving.application import Application
from agent_world.serving.signals import asked_to_end

EVENT_LOOP = {"use_uvloop": True}
"""Options of `anyio.run` for a server: with asyncio's own loop a call over MCP costs the server twice the CPU."""
_GRACE_S = 2
"""Seconds that answers under way have when the server is asked to end."""
_HEAD_S = 10
"""Seconds that a client has to say what it wants: uvicorn itself waits for that without end."""


async def serve_http(
    app: Application, *, host: str = "127.0.0.1", port: int = 0, announce: Callable[[str], None] = lambda origin: None
) -> signal.Signals | None:
    """Serve until cancelled, or asked to by the signal that is returned; 0 takes a free port.

    `announce` is told the origin, ``http://127.0.0.1:8765``, as soon as clients can connect.

    Raises:
        BadInputError: the port is taken, or the host is none of this machine.
    """
    with _listening(host, port) as listening:
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="on", ws="none", server_header=False,
            http=_Connection, limit_concurrency=app.limits.connections + 1, timeout_graceful_shutdown=_GRACE_S,
        )  # fmt: skip
        server = _Server(config)
        asked = None
        async with anyio.create_task_group() as group:

            async def serve() -> None:
                with anyio.CancelScope(shield=True):  # or its end would not be awaited
                    await server.serve(sockets=[listening])
                group.cancel_scope.cancel()

            group.start_soon(serve)
            try:
                announce(f"http://{_written(host)}:{listening.getsockname()[1]}")
                asked = await asked_to_end()
            finally:
                with anyio.CancelScope(shield=True):
                    await app.end_sessions()
                server.should_exit = True
        return asked


class _Connection(HttpToolsProtocol):
    """Closed when it says nothing, or does not come to the end of a request's head."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()
        else:
            self._forget_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(_HEAD_S, self.transport.close)

    def _forget_head(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us: uvicorn would raise them again, and a second time end the process unclean."""
        yield


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except socket.gaierror as error:
        raise BadInputError(f"host {host}", str(error), "name an address of this machine") from None
    except OSError as error:
        raise BadInputError(f"port {port} of {host}", str(error), "choose another port") from None


def _written(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
