"""Tasks as MCP prompts: what somebody could ask for in an environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import mcp_types as types
from mcp.shared.exceptions import MCPError

from agent_world.identity import artifact_id_of
from agent_world.serving.tasks import TaskEntry

_PAGE = 100
_TITLE = 80


def page_of_prompts(tasks: Sequence[TaskEntry], cursor: str | None) -> types.ListPromptsResult:
    """A hundred of the tasks, by their names, from where `cursor` left off.

    Raises:
        MCPError: no list of ours gave this cursor.
    """
    start = 0 if cursor is None else int(cursor) if cursor.isdecimal() and len(cursor) < 10 else -1
    if start < 0:
        raise MCPError(types.INVALID_PARAMS, "This cursor is not from the list of prompts.")
    prompts = [
        types.Prompt(name=name, title=_title(task.instruction), description=task.instruction)
        for name, task in list(_by_name(tasks).items())[start : start + _PAGE]
    ]
    end = start + _PAGE
    return types.ListPromptsResult(prompts=prompts, next_cursor=str(end) if end < len(tasks) else None)


def prompt(tasks: Sequence[TaskEntry], name: str) -> types.GetPromptResult:
    """The instruction of the task with this name, as the user says it.

    Raises:
        MCPError: no task has it.
    """
    task = _by_name(tasks).get(name)
    if task is None:
        raise MCPError(types.INVALID_PARAMS, f"There is no prompt called {name}.")
    return said(task.instruction)


def said(text: str) -> types.GetPromptResult:
    """A prompt of one message, by the user."""
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(messages=[message])


def _by_name(tasks: Sequence[TaskEntry]) -> dict[str, TaskEntry]:
    """Each under its key, or under its version where the key could mean another one, too."""
    versions = Counter(artifact_id_of(task.task) for task in tasks)
    keys = ((artifact_id_of(task.task), task) for task in tasks)
    return {key if versions[key] == 1 else task.task: task for key, task in keys}


def _title(instruction: str) -> str:
    return instruction if len(instruction) <= _TITLE else f"{instruction[: _TITLE - 1]}…"
