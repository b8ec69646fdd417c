"""What one MCP server offers, and what each of its clients holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server


class ClientState(Protocol):
    """What one client holds: its sessions, or its episode."""

    def stop(self) -> None:
        """End what runs in it now: a call that is under way comes back at once."""
        ...

    async def close(self) -> None:
        """Stop, and free everything; closing again is harmless."""
        ...


StateOf = Callable[["ServerRequestContext"], Any]
"""What the client of a request holds: what `Offer.open` gave for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """`name` stands in paths and metrics. `server` makes the MCP server, told how to find what a client holds."""

    name: str
    server: Callable[[StateOf], Server[Any]]
    open: Callable[[], ClientState]
