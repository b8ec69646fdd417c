"""`agent-world status`: what the lake holds and what is unfinished."""

from __future__ import annotations

import click

from dagster_project.cli.common import Format, format_option, lake_option, print_rows


@click.command()
@lake_option
@format_option
def command(lake: str, format: Format) -> None:
    """Counts per table, per gate, per round; runs that have not ended; alarms."""
    from agent_world.lake import open_lake
    from agent_world.lake.status import status

    lines = status(open_lake(lake, create=False))
    print_rows([{"section": s, "name": name, "count": n, "detail": detail} for s, name, n, detail in lines], format)
