"""`agent-world env`: list, show, call and serve environments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from agent_world.errors import BadInputError
from dagster_project.cli.common import Format, format_option, lake_option, print_json, print_rows

if TYPE_CHECKING:
    from agent_world.environments.model import Environment
    from agent_world.world import World

_LISTED = ("title", "category", "tables", "tools", "writing_tools", "tests", "version_id")


@click.group("env")
def command() -> None:
    """List, show, call and serve environments."""


@command.command("list")
@lake_option
@format_option
def list_(lake: str, format: Format) -> None:
    """Every accepted environment."""
    rows = _open(lake).read("environments", where={"state": "created"})
    rows.sort(key=lambda row: row["environment_id"])
    print_rows(
        [{"environment": row["environment_id"], **{name: row[name] for name in _LISTED}} for row in rows], format
    )


@command.command()
@click.argument("environment")
@lake_option
@format_option
def show(lake: str, format: Format, environment: str) -> None:
    """One environment: its tables, its documents, its tools."""
    shown = _open(lake).environment(environment)
    details = {
        "environment": shown.environment_id,
        "version": shown.version,
        "title": shown.title,
        "description": shown.description,
        "theme": shown.theme,
        "database": shown.database_version,
        "tables": {table.name: f"{table.rows} rows, {len(table.columns)} columns" for table in shown.database.tables},
        "documents": [document.path for document in shown.database.documents],
        "tools": [_tool(shown, index) for index in range(len(shown.tools))],
    }
    if format == "json":
        print_json(details)
        return
    tools = details.pop("tools")
    print_rows([{"": name, "value": value} for name, value in details.items()], format)
    print_rows(tools, format)


@command.command()
@click.argument("environment")
@click.argument("tool")
@click.argument("arguments", metavar="JSON", default="{}")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the session.")
@lake_option
def call(lake: str, environment: str, tool: str, arguments: str, seed: int) -> None:
    """Call one tool in a fresh session; prints the observation and what it changed.

    Ends non-zero unless the tool gave a result.
    """
    from agent_world.environments.state import normalised

    parsed = _arguments(arguments)
    called = _open(lake).environment(environment)
    with called.session(seed=seed) as session:
        seen = session.call(tool, parsed)
        changed = normalised(session.diff(), called.database)
    print_json({"status": seen.status, "value": seen.value, "changed": changed})
    if seen.status != "ok":
        click.get_current_context().exit(1)


@command.command()
@click.argument("environments", metavar="ENV...", nargs=-1, required=True)
@click.option(
    "--transport", type=click.Choice(["stdio", "http"]), default="stdio", show_default=True, help="MCP transport."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="For http; 0: any free one."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of every client's session.")
@lake_option
def serve(lake: str, environments: tuple[str, ...], transport: str, port: int, seed: int) -> None:
    """Serve environments over MCP; every client gets an episode of its own.

    With stdio: one environment to the client that started this command. With http: any number, on loopback.
    """
    import anyio

    from agent_world.environments.serving import serve_http, serve_stdio

    if transport == "stdio" and len(environments) != 1:
        raise click.UsageError("stdio serves one environment; name one, or use --transport http")
    world = _open(lake)
    served = [world.environment(environment) for environment in environments]
    if transport == "stdio":
        anyio.run(lambda: serve_stdio(served[0], seed=seed))
    else:
        anyio.run(lambda: serve_http(served, port=port, seed=seed, announce=lambda url: click.echo(url, err=True)))


def _open(lake: str) -> World:
    from agent_world.world import open

    return open(lake)


def _tool(environment: Environment, index: int) -> dict[str, Any]:
    tool = environment.tools[index]
    return {
        "tool": tool.name,
        "writes": tool.writes,
        "arguments": ", ".join(tool.input_schema.get("properties", {})),
        "description": tool.description,
        "version": environment.tool_versions[index],
    }


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
