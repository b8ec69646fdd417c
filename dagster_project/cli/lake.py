"""`agent-world lake`: keep a lake in order."""

from __future__ import annotations

import sys

import click

from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_rows
from dagster_project.cli.work import shown_work, tell_disk_use


@click.group()
def command() -> None:
    """Repair a damaged lake, compact a grown one."""


@command.command()
@click.option("--apply", is_flag=True, help="Do it; without it, only say what is wrong and what would be done.")
@click.option("--from", "backup", metavar="URI", help="A lake that holds copies, such as an export.")
@lake_option
@format_option
def repair(apply: bool, backup: str | None, lake: str, format: Format) -> None:
    """Say what is damaged and what can still be read; put right what can be put right.

    What follows from the events is made anew, the rest is moved to quarantine/ in the lake and named; nothing is
    deleted. Exits 1 while something is wrong or lost.
    """
    from agent_world.lake import open_lake
    from agent_world.lake.repair import repair as mend
    from agent_world.lake.storage import open_storage

    other = None if backup is None else open_lake(backup, create=False)
    with shown_work() as tell:
        found = mend(open_storage(lake), dry_run=not apply, backup=other, on_progress=tell)
    rows = [{"what": line.what, "why": line.why, "cure": line.cure, "lost": line.lost} for line in found.lines]
    if rows or format != "table":
        print_rows(rows, format)
    lost = any(line.lost for line in found.lines)
    readable = f"{found.batches} batches, {found.versions} versions"
    if not rows:
        click.echo(f"Nothing is wrong: {readable}.", err=True)
    elif not apply:
        click.echo(f"Readable after the repair: {readable}. Nothing was changed; --apply does it.", err=True)
    else:
        where = f" Damaged files lie in {found.aside}." if found.aside else ""
        click.echo(f"Repaired; readable: {readable}.{where}", err=True)
    if lost or (rows and not apply):
        sys.exit(1)


@command.command()
@lake_option
@format_option
def compact(lake: str, format: Format) -> None:
    """Rewrite small files into few, and order large projections by their id.

    Snapshots stay readable; refused when one of them is not. The small files go with `agent-world gc --remove`.
    """
    from agent_world.lake.maintenance import compact as work
    from agent_world.lake.maintenance import disk_use

    world = open_world(lake)
    before = disk_use(world.storage)
    print_rows([table._asdict() for table in work(world)], format)
    tell_disk_use(before, disk_use(world.storage))
