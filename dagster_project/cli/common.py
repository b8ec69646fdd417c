"""What every command shares: where the lake is, how rows are printed."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

import click

Format = Literal["table", "json", "csv"]
F = TypeVar("F", bound=Callable[..., Any])

_CELL = 90  # characters of a cell in a table for people; json and csv carry all


def lake_option(command: F) -> F:
    """Give a command the argument `lake`: --lake, else AGENT_WORLD_LAKE, else ./lake."""
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


def print_rows(rows: Sequence[Mapping[str, Any]], format: Format) -> None:
    """Print a listing: a list of objects as JSON, CSV with a header, or a table for people."""
    if format == "json":
        print_json([dict(row) for row in rows])
    elif format == "csv":
        names = _names(rows)
        writer = csv.writer(sys.stdout)
        writer.writerow(names)
        writer.writerows([_text(row.get(name)) for name in names] for row in rows)
    else:
        _print_table(rows)


def print_json(value: Any) -> None:
    """Print one JSON value."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=_plain))


def _print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = _names(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        numbers = all(isinstance(row.get(name), (int, float, type(None))) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_short(_text(row.get(name)))) for name in names))
    # Piped output has no width of its own, and folded ids are of no use to the next command.
    Console(width=None if sys.stdout.isatty() else 10_000).print(table)


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CELL else f"{line[: _CELL - 1]}…"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
