"""`agent-world snapshot`: pin the state of a lake, carry it elsewhere, prove it."""

from __future__ import annotations

import sys

import click

from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_json, print_rows


@click.group()
def command() -> None:
    """Pin, export, import and verify the state of a lake."""


@command.command()
@lake_option
@format_option
def create(lake: str, format: Format) -> None:
    """Pin the lake as it stands; copies nothing."""
    from agent_world.lake import snapshots

    row = {"snapshot_id": snapshots.create(open_world(lake))}
    print_json(row) if format == "json" else print_rows([row], format)


@command.command("list")
@lake_option
@format_option
def list_(lake: str, format: Format) -> None:
    """Every snapshot of the lake, imported ones included."""
    columns = ["snapshot_id", "events_version", "recorded_at", "run_id"]
    print_rows(open_world(lake).read("snapshots", columns=columns), format)


@command.command()
@click.argument("snapshot")
@click.argument("uri")
@lake_option
@format_option
def export(snapshot: str, uri: str, lake: str, format: Format) -> None:
    """Copy SNAPSHOT into the lake at URI (directory or s3://), which is made when there is none."""
    from agent_world.lake import snapshots

    print_rows([{"snapshot_id": snapshots.export(open_world(lake), snapshot, uri), "uri": uri}], format)


@command.command("import")
@click.argument("uri")
@lake_option
@format_option
def import_(uri: str, lake: str, format: Format) -> None:
    """Take every snapshot of the lake at URI; all of it is verified before any of it becomes visible."""
    from agent_world.lake import open_lake, snapshots

    ids = snapshots.import_from(open_lake(lake), uri)
    print_rows([{"snapshot_id": snapshot, "uri": uri} for snapshot in ids], format)


@command.command()
@click.argument("snapshot")
@lake_option
@format_option
def verify(snapshot: str, lake: str, format: Format) -> None:
    """Read everything that SNAPSHOT pins again; non-zero exit when anything is not what it was."""
    from agent_world.lake import snapshots

    problems = snapshots.verify(open_world(lake), snapshot)
    if problems or format != "table":
        print_rows([problem._asdict() for problem in problems], format)
    if problems:
        sys.exit(1)
    click.echo(f"{snapshot} holds: files, batches, tables and blobs are the pinned ones", err=format != "table")
