"""`agent-world env`: list, show, call and serve environments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from agent_world.errors import BadInputError
from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_json, print_rows
from dagster_project.cli.serving import ServingOptions, serve_to_many, serve_to_one, serving_options

if TYPE_CHECKING:
    from agent_world.environments.model import Environment, Tool
    from agent_world.serving.mcp.offer import Offer

_LISTED = ("title", "category", "tables", "tools", "writing_tools", "tests", "version_id")


@click.group("env")
def command() -> None:
    """List, show, call and serve environments.

    ENV is an environment's key, as `list` names it, or a unique start of one; a version (key@hash) means exactly that.
    """


@command.command("list")
@lake_option
@format_option
def list_(lake: str, format: Format) -> None:
    """Every accepted environment."""
    rows = open_world(lake).read("environments", where={"state": "created"})
    rows.sort(key=lambda row: row["environment_id"])
    print_rows(
        [{"environment": row["environment_id"], **{name: row[name] for name in _LISTED}} for row in rows], format
    )


@command.command()
@click.argument("environment", metavar="ENV")
@lake_option
@format_option
def show(lake: str, format: Format, environment: str) -> None:
    """One environment: its tables, its documents, its tools; as JSON with the schemas of each tool.

    ENV is a key or a unique start of one. `accuracy` is the share of a tool's unit tests that it passes. More than half
    is enough to be kept; what a kept tool `fails` is shown by the report, case by case.
    """
    world = open_world(lake)
    shown = world.environment(environment)
    details = {
        "environment": shown.environment_id,
        "version": shown.version,
        "title": shown.title,
        "description": shown.description,
        "theme": shown.theme,
        "database": shown.database_version,
        "tables": {table.name: f"{table.rows} rows, {len(table.columns)} columns" for table in shown.database.tables},
        "documents": [document.path for document in shown.database.documents],
    }
    tested = {row["version_id"]: row for row in world.read("tools", where={"version_id": list(shown.tool_versions)})}
    tools = [
        _whole(tool, version, tested[version]) for tool, version in zip(shown.tools, shown.tool_versions, strict=True)
    ]
    facts = [{"part": name, "value": value} for name, value in details.items()]
    if format == "json":
        print_json({**details, "tools": tools})
    elif format == "csv":
        print_rows([*facts, *({"part": f"tool {tool['tool']}", "value": tool} for tool in tools)], format)
    else:
        print_rows(facts, format)
        print_rows([_line(tool) for tool in tools], format)


@command.command()
@click.argument("environment", metavar="ENV")
@click.argument("tool")
@click.argument("arguments", metavar="[JSON]", default="{}")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the session.")
@lake_option
def call(lake: str, environment: str, tool: str, arguments: str, seed: int) -> None:
    """Call one tool in a fresh session; prints the observation and what it changed.

    ENV is a key or a unique start of one. Ends non-zero unless the tool gave a result.

    \b
      agent-world env call airportsapi search_airports '{"name": "Keflavik"}'
    """  # noqa: D301 - click takes the character
    from agent_world.environments.state import normalised

    parsed = _arguments(arguments)
    called = open_world(lake).environment(environment)
    with called.session(seed=seed) as session:
        seen = session.call(tool, parsed)
        changed = normalised(session.diff(), called.database)
    print_json({"status": seen.status, "value": seen.value, "changed": changed})
    if seen.status != "ok":
        click.get_current_context().exit(1)


@command.command()
@click.argument("environments", metavar="[ENV]...", nargs=-1)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of every client's session.")
@serving_options
@lake_option
def serve(lake: str, environments: tuple[str, ...], seed: int, options: ServingOptions) -> None:
    """Serve environments over MCP; every client gets sessions of its own.

    ENV is a key or a unique start of one. With stdio: to the client that started this command; where they are several,
    the name of each tool says which environment it is of. With http: on loopback, a URL each is printed, without ENV
    of every accepted environment; and at /v1 episodes of their tasks for trainers (/v1/docs), /health, /metrics.

    \b
      agent-world env serve airportsapi                                   as the command of an MCP client
      agent-world env serve airportsapi hydra                             two at once: airport-cd6b91__search_airports
      agent-world env serve airportsapi hydra --transport http --port 8765

    A task with a judge is served by `agent-world task serve`.
    """  # noqa: D301 - click takes the character
    from agent_world.serving.mcp.environments import environment_offer, refuse_twice
    from agent_world.serving.metrics import Metrics
    from agent_world.serving.tasks import LakeTasks

    if not environments and options.transport == "stdio":
        raise click.UsageError("Name the environments, or serve all with --transport http.")
    world = open_world(lake)
    served = [world.environment(each) for each in environments] if environments else world.environments()
    refuse_twice(served)
    tasks = LakeTasks(world, [environment.environment_id for environment in served])
    limits, metrics = options.limits, Metrics()

    def offer(those: Sequence[Environment]) -> Offer:
        return environment_offer(those, tasks=tasks, seed=seed, limits=limits, metrics=metrics)

    if options.transport == "stdio":
        serve_to_one(offer(served))
    else:
        serve_to_many([offer([each]) for each in served], options, metrics, tasks)


def _whole(tool: Tool, version: str, tested: Mapping[str, Any]) -> dict[str, Any]:
    from agent_world.codec import encode

    public = encode(tool.public())
    measured = {"accuracy": tested["accuracy"], "tests": tested["tests"]}
    return {"tool": public.pop("name"), **public, **measured, "version": version}


def _line(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The tool without its schemas: each argument with its type, and a question mark where it may be left out."""
    schema = tool["input_schema"]
    arguments = [
        f"{name}{'' if name in schema.get('required', ()) else '?'}: {_type(kind)}"
        for name, kind in schema.get("properties", {}).items()
    ]
    return {
        "tool": tool["tool"],
        "writes": tool["writes"],
        "arguments": ", ".join(arguments),
        "accuracy": tool["accuracy"],
        "fails": _failed(tool),
        "description": tool["description"],
        "version": tool["version"],
    }


def _failed(tool: Mapping[str, Any]) -> str:
    """How many of its own tests the tool fails; empty when none."""
    accuracy, tests = tool["accuracy"], tool["tests"]
    return "" if accuracy in (None, 1) else f"{round((1 - accuracy) * tests)} of {tests} tests"


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "any")
    if kind == "array":
        return f"{_type(schema.get('items', {}))}[]"
    return kind if isinstance(kind, str) else " | ".join(kind)


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInputError(
            f"the arguments {text!r}", f"not JSON ({error})", 'write them like {"name": "value"}'
        ) from None
    if not isinstance(value, dict):
        raise BadInputError(f"the arguments {text!r}", "not an object", 'write them like {"name": "value"}')
    return value
