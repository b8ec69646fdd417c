"""`agent-world gc`: remove what nothing needs."""

from __future__ import annotations

import click

from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_rows
from dagster_project.cli.work import megabytes, tell_disk_use


@click.command()
@click.option("--remove", is_flag=True, help="Remove what is found; without it, only say what would go.")
@click.option("--grace-days", type=click.IntRange(0), default=7, show_default=True, help="Spare what is younger.")
@lake_option
@format_option
def command(remove: bool, grace_days: int, lake: str, format: Format) -> None:
    """Find garbage of crashes, compacted files and projections out of use. What a snapshot pins always stays."""
    from datetime import timedelta

    from agent_world.lake.gc import gc
    from agent_world.lake.maintenance import disk_use

    world = open_world(lake)
    before = disk_use(world.storage)
    found = gc(world, grace=timedelta(days=grace_days), dry_run=not remove)
    print_rows([item._asdict() for item in found], format)
    if remove:
        tell_disk_use(before, disk_use(world.storage))
    else:
        size = sum(item.size for item in found)
        click.echo(f"{megabytes(size)} of {megabytes(sum(before.values()))} would go; --remove does it.", err=True)
