"""What complexification brought into an environment, as far as tools reach it: a task is to use each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_world.arena.model import Guideline
from agent_world.environments.model import Environment, Tool
from agent_world.tasks.model import Task


def over_additions(environment: Environment) -> dict[str, tuple[Tool, ...]]:
    """The tools over each table and document that a complexification round added."""
    database = environment.database
    added = [table.name for table in database.tables if table.added_in > 0 and table.workflow is None]
    added += [document.path for document in database.documents if document.added_in > 0]
    over = {name: tuple(t for t in environment.tools if name in (*t.tables, *t.documents)) for name in added}
    return {name: tools for name, tools in over.items() if tools}


def uses(tasks: Iterable[Task], tools: Sequence[Tool]) -> bool:
    """Whether the plan of one of these tasks calls one of these tools."""
    wanted = {tool.name for tool in tools}
    return any(not wanted.isdisjoint(task.shape) for task in tasks)


def guideline_for(environment: Environment, tools: Sequence[Tool]) -> Guideline:
    """What asks synthesis for a task that calls one of these tools."""
    return Guideline(
        environment=environment.environment_id,
        tools=tuple(tool.name for tool in tools),
        writes=True if all(tool.writes for tool in tools) else None,
        kinds=("graph",),
    )
