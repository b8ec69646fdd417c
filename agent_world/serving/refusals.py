"""What a request is refused with: one error, one list of codes, one form of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from starlette.responses import JSONResponse

from agent_world.errors import AgentWorldError

MCP_ENDING = "/mcp"
"""Every path that speaks MCP ends so."""
REFUSED = "agent_world.refused"
"""Key of the request's scope under which the code of its refusal is left, for metrics and the access log."""
_INVALID_REQUEST = -32600

Code = Literal[
    "unknown_host", "foreign_origin", "unauthorised", "no_such_path", "method_not_allowed", "http_error",
    "not_json", "incomplete", "too_large", "too_slow", "malformed_json", "invalid_request",
    "unknown_task", "ambiguous_task", "unusable_task", "batch_too_large", "key_conflict",
    "unknown_episode", "episode_closed", "episode_expired", "episode_over",
    "step_conflict", "step_forgotten", "malformed_step", "call_limit",
    "server_full", "shutting_down", "internal",
]  # fmt: skip


class RefusedError(AgentWorldError):
    """A request gets no further: its HTTP status, a code for programs and a sentence for people."""

    def __init__(self, status: int, code: Code, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, code, message, headers)
        self.code: Code = code
        self.status, self.message, self.headers = status, message, dict(headers or {})

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def response(self, path: str) -> JSONResponse:
        """The refusal as an answer; to those who speak MCP in its words, which their clients show them."""
        if path.endswith(MCP_ENDING):
            error = {"code": _INVALID_REQUEST, "message": self.message, "data": {"code": self.code}}
            return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, self.status, self.headers)
        body = {"error": {"code": self.code, "message": self.message}}
        return JSONResponse(body, self.status, self.headers)
