"""What the tests serve: the toy library, with documents that its tools read and write, and its tasks."""

from __future__ import annotations

from dataclasses import replace

from agent_world.environments.model import Document, Environment, Tool
from agent_world.identity import VersionId
from agent_world.serving.mcp.attempts import task_offer
from agent_world.serving.mcp.environments import environment_offer
from agent_world.serving.mcp.offer import Offer
from agent_world.serving.tasks import GivenTasks
from agent_world.world import BoundTask
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING
from tests.toy import TOOLS, toy_environment

TOY = toy_environment()
OTHER = replace(TOY, environment_id="another-library-of-the-city-0123ab")

_NOTHING = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def tool(name: str, source: str, output_schema: dict, *, writes: bool = False, documents: tuple[str, ...] = ()) -> Tool:
    """A tool that takes nothing."""
    return Tool(
        tool_id=f"toy/{name}", name=name, description=name, input_schema=_NOTHING, output_schema=output_schema,
        writes=writes, source=source, pattern="get", tables=(), documents=documents,
    )  # fmt: skip


WITH_DOCUMENTS = replace(
    TOY,
    tools=(
        *TOOLS,
        tool(
            "read_rules",
            'def read_rules(world) -> dict:\n    return {"text": world.read_document("rules.yaml")}\n',
            _TEXT,
            documents=("rules.yaml", "notices.md"),
        ),
        tool(
            "tighten_rules",
            "def tighten_rules(world) -> dict:\n"
            '    world.write_document("rules.yaml", "loan_days: 7\\n")\n'
            '    world.write_document("notices.md", "# Shorter loans\\n")\n'
            '    return {"text": "done"}\n',
            _TEXT,
            writes=True,
            documents=("rules.yaml", "notices.md"),
        ),
    ),
    database=replace(
        TOY.database,
        documents=(
            *TOY.database.documents,
            Document(path="salaries.csv", format="csv", title="Salaries", source=None),
        ),
    ),
    files={**TOY.files, "documents/salaries.csv": b"name,salary\nIris,1\n"},
)
"""Of its documents no tool touches `salaries.csv`."""

ODD = replace(
    TOY,
    tools=(
        tool("liar", 'def liar(world):\n    return {"text": 5}\n', _TEXT),
        tool(
            "deep", "def deep(world):\n    v = 1\n    for _ in range(400):\n        v = [v]\n    return {'v': v}\n", {}
        ),
        tool("broken", "def broken(world):\n    raise KeyError('x')\n", _TEXT),
        tool("hangs", "def hangs(world):\n    while True:\n        pass\n", _TEXT),
    ),
)
"""Results that are not what their schema says, and none at all."""

TASKS = GivenTasks([BoundTask(version=VersionId(f"{task.task_id}@0"), task=task, environment=ENVIRONMENT)
                   for task in (READING, WRITING, PROGRAM)])  # fmt: skip


def library(environment: Environment = TOY, **options) -> Offer:
    """One environment."""
    return environment_offer([environment], **options)


def attempt(name: str = "toy-read", **options) -> Offer:
    """A task of the toy library."""
    return task_offer(TASKS.task(name), **options)
