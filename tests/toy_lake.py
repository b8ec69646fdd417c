"""The toy world in a lake."""

from __future__ import annotations

from dataclasses import replace

from agent_world import world
from agent_world.codec import encode
from agent_world.environments.formats import initial_state
from agent_world.environments.model import Environment
from agent_world.identity import VersionId
from agent_world.lake.batch import Batch

THEME = {
    "source": "M3", "origin": "tests", "title": "City library", "description": "Books and loans.", "tools": [],
    "nouns": ["book"], "verbs": ["lend"], "licence": "CC0-1.0", "sha256": "0" * 64,
}  # fmt: skip


def save_toy(batch: Batch, toy: Environment) -> tuple[VersionId, list[VersionId]]:
    """The toy environment with all that it rests on: its version, and those of its tools in order."""
    theme = batch.create("theme", "toy-theme", THEME)
    toy_database = replace(toy.database, theme=theme, digest=initial_state(toy).digest)
    database = world.save_database(batch, toy_database, dict(toy.files), [(theme, "theme")])
    tools = [batch.create("tool", tool.tool_id, encode(tool), parents=[(database, "database")]) for tool in toy.tools]
    environment = world.save_environment(
        batch, environment_id=toy.environment_id, title=toy.title, description=toy.description, theme=theme,
        database=database, tools=tools, runtime=toy.runtime, state_format=toy.state_format,
    )  # fmt: skip
    return environment, tools
