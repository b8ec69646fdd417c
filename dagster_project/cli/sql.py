"""`agent-world sql`: every table and view of the lake in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Literal

import click

from dagster_project.cli.common import Format, at_option, format_option, lake_option, open_world, print_rows

_NO_QUERY = "Missing argument 'QUERY'; SHOW TABLES lists the tables, --views says what the views mean."


@click.command()
@click.argument("query", required=False)
@click.option(
    "--engine", type=click.Choice(["duckdb", "spark"]), default="duckdb", show_default=True, help="Who answers."
)
@click.option("--views", is_flag=True, help="Say what each view and each of its columns means.")
@at_option
@lake_option
@format_option
def command(
    query: str | None, engine: Literal["duckdb", "spark"], views: bool, at: str | None, lake: str, format: Format
) -> None:
    """Run a query of DuckDB or Spark SQL; every table, every view and `events` has its name.

    \b
      agent-world sql "SELECT gate, sum(candidates), sum(accepted) FROM validity_ladder GROUP BY ALL"
      agent-world sql "SELECT * FROM pass_rates WHERE cut = 'environment'" --engine spark
      agent-world sql "SHOW TABLES"
    """  # noqa: D301 - click takes the character
    if views and query is not None:
        raise click.UsageError("--views takes no QUERY; leave one of them out")
    if views:
        print_rows(list(_meanings()), format)
        return
    if query is None:
        raise click.UsageError(_NO_QUERY)
    from dagster_project.cli.values import plain

    world = open_world(lake)
    if engine == "spark":
        from agent_world.lake import spark

        answer = spark.query(query, world, at)
    else:
        answer = world.sql(query, at=at)
    names = _distinct(answer.column_names)
    print_rows([plain(row) for row in answer.rename_columns(names).to_pylist()], format, names)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names of columns, a repeated one with a number: a row as an object has each name once."""
    found: dict[str, None] = {}
    for name in names:
        free = (f"{name}_{number}" for number in count(2))
        found[name if name not in found else next(other for other in free if other not in found)] = None
    return list(found)


def _meanings() -> Iterator[dict[str, Any]]:
    from lake_schemas.views import VIEWS

    for view in VIEWS.values():
        yield {"view": view.name, "column": None, "type": None, "meaning": view.meaning}
        for column in view.columns:
            yield {"view": view.name, "column": column.name, "type": str(column.type), "meaning": column.meaning}
