"""`agent-world sql`: every table of the lake in SQL."""

from __future__ import annotations

import click

from dagster_project.cli.common import Format, at_option, format_option, lake_option, open_world, print_rows


@click.command()
@click.argument("query")
@at_option
@lake_option
@format_option
def command(query: str, at: str | None, lake: str, format: Format) -> None:
    """Run a DuckDB query; every table and `events` is a view.

    \b
      agent-world sql "SELECT gate, accepted, count(*) FROM gate_verdicts GROUP BY ALL"
      agent-world sql "SHOW TABLES"
    """  # noqa: D301 - click takes the character
    from dagster_project.cli.values import plain

    print_rows([plain(row) for row in open_world(lake).sql(query, at=at).to_pylist()], format)
