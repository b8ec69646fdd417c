"""`agent-world gc`: remove what nothing needs."""

from __future__ import annotations

import click

from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_rows


@click.command()
@click.option("--remove", is_flag=True, help="Remove what is found; without it, only say what would go.")
@click.option("--grace-days", type=click.IntRange(0), default=7, show_default=True, help="Spare what is younger.")
@lake_option
@format_option
def command(remove: bool, grace_days: int, lake: str, format: Format) -> None:
    """Find garbage of crashes, compacted files and projections out of use. What a snapshot pins always stays."""
    from datetime import timedelta

    from agent_world.lake.gc import gc

    found = gc(open_world(lake), grace=timedelta(days=grace_days), dry_run=not remove)
    print_rows([item._asdict() for item in found], format)
