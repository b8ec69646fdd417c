"""Whose fault it was: what a client did wrong it is told; of anything else it learns that it is not to blame."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agent_world.serving.exclusive import ClosedError

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

_log = logging.getLogger(__name__)


async def blaming(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """An MCP middleware: a fault of the server is logged, and said to be one."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except ClosedError as closed:
        raise MCPError(types.INVALID_REQUEST, f"{closed}".capitalize()) from None
    except Exception as error:
        _log.exception("%s failed", ctx.method)
        message = "The server failed, through no fault of this request; open a new session."
        raise MCPError(types.INTERNAL_ERROR, message) from error
