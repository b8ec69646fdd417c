"""`agent-world spark`: the lake for people who live in Spark."""

from __future__ import annotations

import signal

import click

from dagster_project.cli.common import Format, at_option, format_option, lake_option, open_world, print_rows


@click.group()
def command() -> None:
    """Serve the lake to Spark clients, and make marts of it."""


@command.command()
@click.option("--port", type=click.IntRange(1, 65535), default=15002, show_default=True, help="Where clients connect.")
@at_option
@lake_option
def connect(port: int, at: str | None, lake: str) -> None:
    """Start a Spark Connect server on loopback, with every table and view of the lake; Ctrl-C (or SIGTERM) ends it.

    It shows the lake as it stands when it starts, or stood --at. Whoever on this machine may reach the port may do what
    you may: Spark runs the code of its clients.
    """
    from agent_world.lake.spark.connect import served
    from dagster_project.cli.ui import check_ports

    opened = open_world(lake)
    check_ports({"--port": port})
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with served(opened, at, port=port) as address:
            click.echo(f"Spark Connect  {address}\nCtrl-C ends it.")
            while True:
                signal.pause()
    except KeyboardInterrupt:
        pass


@command.command()
@click.argument("name", default="rollouts_daily")
@click.option("--to", "place", metavar="URI", help="Directory or s3:// URI; else beside the lake, under marts/.")
@click.option("--snapshot", metavar="ID", help="Make it from this snapshot, not from one that is taken now.")
@lake_option
@format_option
def mart(name: str, place: str | None, snapshot: str | None, lake: str, format: Format) -> None:
    """Write the mart NAME with Spark, a Delta table of its own: daily facts of rollouts by default."""
    from agent_world.lake.spark import marts

    spec = marts.mart(name)
    print_rows([{"mart": name, "place": marts.write_mart(open_world(lake), spec, place, snapshot)}], format)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
