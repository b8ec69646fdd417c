"""`agent-world ui`: Dagster and MLflow on loopback over one lake."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack, suppress

import click

from agent_world.errors import AgentWorldError
from agent_world.stores import POSTGRES_URL, PostgresAddressError, on_postgres
from dagster_project.cli.common import LOOPBACK, lake_option, open_world

_port = click.IntRange(1, 65535)


class PortError(AgentWorldError):
    """A port of loopback that `option` names cannot be listened on."""

    def __init__(self, port: int, option: str, why: str) -> None:
        super().__init__(port, option, why)
        self.port, self.option, self.why = port, option, why

    def __str__(self) -> str:
        return f"port {self.port} of {LOOPBACK} cannot be used ({self.why}); choose another with {self.option}"


@click.command()
@click.option(
    "--profile", type=click.Choice(["embedded", "postgres"]),
    show_default=f"postgres where {POSTGRES_URL} is set, else embedded",
    help="What Dagster and MLflow keep their records in: SQLite beside the lake, or the database that variable names.",
)  # fmt: skip
@click.option("--dagster-port", type=_port, default=3000, show_default=True, help="Where Dagster's page is served.")
@click.option("--mlflow-port", type=_port, default=5001, show_default=True, help="Where MLflow's page is served.")
@lake_option
def command(lake: str, profile: str | None, dagster_port: int, mlflow_port: int) -> None:
    """Open Dagster (webserver and daemon) and MLflow over this lake; Ctrl-C (or SIGTERM) ends both.

    What Dagster's page materialises has the settings of the lake's last run. `agent-world run` writes to the database
    of AGENT_WORLD_POSTGRES_URL too, if that is set.
    """
    from dagster_project import services
    from dagster_project.instance import instance_of

    open_world(lake)
    check_ports({"--dagster-port": dagster_port, "--mlflow-port": mlflow_port})
    _choose(profile)
    with instance_of(lake):  # its tables are there before two processes want to make them
        environment = os.environ | services.environment(lake) | services.last_settings(lake)
    commands = services.dagster_whole(LOOPBACK, dagster_port), services.mlflow(lake, LOOPBACK, mlflow_port)
    click.echo(
        f"Dagster  http://{LOOPBACK}:{dagster_port}\nMLflow   http://{LOOPBACK}:{mlflow_port}\nCtrl-C ends both."
    )
    signal.signal(signal.SIGTERM, _interrupt)
    # A group of its own for each: both start helpers that outlive them when only they are asked to end.
    started = [subprocess.Popen(arguments, env=environment, start_new_session=True) for arguments in commands]
    try:
        for service in started:
            service.wait()
    except KeyboardInterrupt:
        pass
    finally:
        for service in started:
            _end(service)


def _choose(profile: str | None) -> None:
    """Make what the variable says fit the profile asked for."""
    if profile == "embedded":
        os.environ.pop(POSTGRES_URL, None)
    elif profile == "postgres" and not on_postgres():
        raise PostgresAddressError("is not set")


def check_ports(ports: Mapping[str, int]) -> None:
    """See that each port can be listened on, all of them at once; keys are the options that name them."""
    with ExitStack() as held:
        for option, port in ports.items():
            probe = held.enter_context(socket.socket())
            # As servers do it: a port whose last server has just ended is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
                probe.listen()
            except OSError as error:
                raise PortError(port, option, error.strerror or str(error)) from None


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _end(service: subprocess.Popen[bytes], patience: float = 20) -> None:
    """Ask the whole group of `service` to end, and make it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(service.pid, number)
        with suppress(subprocess.TimeoutExpired):
            service.wait(timeout=patience)
