"""Tools and what they answer, in the words of MCP.

An output schema must describe an object and be true of every structured result. One of anything else is published as
an object with that value as its only field, `result`. A refusal or an error is a text result with `isError` and has no
structure, so that no schema speaks of it. Neither has a result that its tool's own schema forbids: that is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types

from agent_world.environments.arguments import complaint
from agent_world.environments.model import Environment, Json, PublicTool
from agent_world.rollouts.model import Observation

_PREFIX = 14
"""Characters of a prefix: with two underscores and a tool's name of 48 they make the 64 that model providers take."""


class PublishedTool:
    """One tool as clients see it."""

    def __init__(self, name: str, tool: PublicTool) -> None:
        self._schema = tool.output_schema
        self._wrapped = tool.output_schema.get("type") != "object"
        self.listed = types.Tool(
            name=name,
            description=tool.description,
            input_schema=dict(tool.input_schema),
            output_schema=_wrap(tool.output_schema) if self._wrapped else dict(tool.output_schema),
            annotations=types.ToolAnnotations(
                read_only_hint=not tool.writes,
                destructive_hint=tool.writes,
                idempotent_hint=not tool.writes,
                open_world_hint=False,
            ),
        )

    def result(self, observation: Observation, whole: Json = None) -> types.CallToolResult:
        """What came back from a call; `whole` is its value when the observation was cut for whoever reads it.

        The text is the observation. The structure is whole: a schema need not be true of a part.
        """
        if observation.status != "ok":
            return failed(observation)
        value = observation.value if whole is None else whole
        text = _text(observation.value)
        if (problem := complaint(self._schema, value)) is not None:
            broken = types.TextContent(type="text", text=f"This breaks the tool's own output schema: {problem}")
            return types.CallToolResult(content=[text, broken], is_error=True)
        return types.CallToolResult(content=[text], structured_content={"result": value} if self._wrapped else value)


def structured(value: Mapping[str, Json]) -> types.CallToolResult:
    """A result in both of its forms."""
    return types.CallToolResult(content=[_text(value)], structured_content=value)


def failed(observation: Observation) -> types.CallToolResult:
    """A call that gave no result: a model can read why."""
    return types.CallToolResult(content=[_text(observation.value)], is_error=True)


def refusal(code: str, message: str) -> types.CallToolResult:
    """A call that reached no tool."""
    return failed(Observation(status="invalid", value={"error": {"code": code, "message": message}}))


def no_such_tool(name: str) -> types.CallToolResult:
    """A call of what is not there."""
    return refusal("unknown_tool", f"There is no tool called {name}.")


def published_name(environment: Environment, tool: str) -> str:
    """What a tool is called beside those of other environments: ``airport-cd6b91__get_airport``.

    The prefix is the environment's key; of a long one its start and the hash that it ends with.
    """
    key = environment.environment_id
    prefix = key if len(key) <= _PREFIX else f"{key[: _PREFIX - 7].rstrip('-')}{key[-7:]}"
    return f"{prefix}__{tool}"


def _wrap(schema: Mapping[str, Json]) -> dict[str, Any]:
    """The schema of an object that holds such a value; definitions stay at the root, where references look for them."""
    inner = {name: value for name, value in schema.items() if name not in ("$defs", "$schema")}
    outer = {name: schema[name] for name in ("$defs", "$schema") if name in schema}
    return {**outer, "type": "object", "properties": {"result": inner}, "required": ["result"]}


def _text(value: Json) -> types.TextContent:
    return types.TextContent(type="text", text=json.dumps(value, ensure_ascii=False))
