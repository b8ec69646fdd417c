"""`agent-world replay`: rebuild every projection from the events."""

from __future__ import annotations

import sys

import click

from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_rows


@click.command()
@click.option("--verify", is_flag=True, help="Compare with what readers saw; non-zero exit if a table differs.")
@lake_option
@format_option
def command(verify: bool, lake: str, format: Format) -> None:
    """Rebuild every projection in a new place and swap it in at once."""
    from agent_world.lake.replay import replay

    results = replay(open_world(lake), verify=verify)
    rows = [{"table": result.table, "rows": result.rows} for result in results]
    if verify:
        rows = [
            row | {"digest": (result.digest or "")[:16], "same": result.same}
            for row, result in zip(rows, results, strict=True)
        ]
    print_rows(rows, format)
    if verify and not all(result.same for result in results):
        sys.exit(1)
