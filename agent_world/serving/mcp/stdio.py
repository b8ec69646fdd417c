"""MCP on the standard streams: the client that started this process is its only one."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

from agent_world.serving.signals import asked_to_end

if TYPE_CHECKING:
    from agent_world.serving.mcp.offer import Offer


async def serve_stdio(offer: Offer) -> None:
    """Serve until the client leaves. Asked to end by a signal, the process closes its sessions and ends by it."""
    state = offer.open()
    server = offer.server(lambda _context: state)
    async with anyio.create_task_group() as group:

        async def end_when_asked() -> None:
            number = await asked_to_end()
            await state.close()
            # A thread is waiting for the next line of the client, and nothing can call it back.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        group.start_soon(end_when_asked)
        try:
            async with stdio_server() as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
        finally:
            with anyio.CancelScope(shield=True):
                await state.close()
            group.cancel_scope.cancel()
