"""What every command shares: where the lake is, how rows are printed, what can be typed next."""

from __future__ import annotations

import csv
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from agent_world.errors import AgentWorldError

if TYPE_CHECKING:
    from agent_world.world import World

Format = Literal["table", "json", "csv"]
F = TypeVar("F", bound=Callable[..., Any])

LOOPBACK = "127.0.0.1"
_CELL = 90  # characters of a cell in a table for people; json and csv carry all


class NoLakeError(AgentWorldError):
    """A command that reads a lake was given another place; `why` says what is there instead."""

    def __init__(self, uri: str, why: str) -> None:
        super().__init__(uri, why)
        self.uri, self.why = uri, why

    def __str__(self) -> str:
        make = typed("run", "--lake", "DIR")
        cure = f"name the right place with --lake or AGENT_WORLD_LAKE, or make a lake in an empty one: {make}"
        return f"{self.uri} is not a lake: {self.why}; {cure}"


def lake_option(command: F) -> F:
    """Give a command what all of them take: the argument `lake` (--lake, else AGENT_WORLD_LAKE, else ./lake), --debug.

    The flag is for `main`, which shows errors.
    """
    command = click.option("--debug", is_flag=True, expose_value=False, help="Show the whole trace of an error.")(
        command
    )
    return click.option(
        "--lake",
        envvar="AGENT_WORLD_LAKE",
        default="lake",
        show_default="AGENT_WORLD_LAKE, else ./lake",
        metavar="URI",
        help="Directory or s3:// URI of the lake.",
    )(command)


def format_option(command: F) -> F:
    """Give a command the argument `format`."""
    choice = click.Choice(["table", "json", "csv"])
    return click.option("--format", type=choice, default="table", show_default=True, help="Output format.")(command)


def at_option(command: F) -> F:
    """Give a command the argument `at`: a point in the history of the lake."""
    meaning = "As the lake stood at a snapshot, an ISO time or a version of events."
    return click.option("--at", metavar="SNAPSHOT|TIME", help=meaning)(command)


def engine_place() -> str:
    """Where work fans out: `local`, ``spark://host:port`` or ``sc://host:port``, by AGENT_WORLD_ENGINE."""
    return os.environ.get("AGENT_WORLD_ENGINE") or "local"


def open_world(lake: str) -> World:
    """The lake that a command works on.

    Raises:
        NoLakeError: there is none.
    """
    from agent_world import world
    from agent_world.lake import NotALakeError

    try:
        return world.open(lake)
    except NotALakeError as error:
        raise NoLakeError(error.uri, error.why) from error


def typed(*arguments: str) -> str:
    """A command line that works when typed here: with the path of the program, unless its environment is active."""
    program = Path(sys.executable).with_name("agent-world")
    if os.environ.get("VIRTUAL_ENV") == sys.prefix:
        program = Path(program.name)
    elif program.is_relative_to(Path.cwd()):
        program = program.relative_to(Path.cwd())
    return shlex.join([str(program), *arguments])


def print_rows(rows: Sequence[Mapping[str, Any]], format: Format, names: Sequence[str] = ()) -> None:
    """Print a listing: a list of objects as JSON, CSV with a header, or a table for people.

    `names` are the columns, where they are known even of a listing without rows.
    """
    names = names or list(dict.fromkeys(name for row in rows for name in row))
    if format == "json":
        print_json([dict(row) for row in rows])
    elif format == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow(names)
        writer.writerows([_text(row.get(name)) for name in names] for row in rows)
    else:
        _print_table(rows, names)


def print_json(value: Any) -> None:
    """Print one JSON value; a float that is no number, which JSON lacks, as its name."""
    click.echo(json.dumps(_finite(value), ensure_ascii=False, indent=2, default=_plain))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _print_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        numbers = all(isinstance(row.get(name), (int, float, type(None))) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_short(row.get(name))) for name in names))
    # Piped output has no width of its own, and folded ids are of no use to the next command.
    Console(width=None if sys.stdout.isatty() else 10_000).print(table)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (datetime, bytes)):
        return _plain(value)
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _short(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, float):
        return f"{value:.6g}"
    line = " ".join(_text(value).split())
    return line if len(line) <= _CELL else f"{line[: _CELL - 1]}…"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
