"""`agent-world ui`: Dagster and MLflow on loopback over one lake."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import click

from agent_world.errors import AgentWorldError
from dagster_project.cli.common import lake_option, open_world

if TYPE_CHECKING:
    from agent_world.world import World

LOOPBACK = "127.0.0.1"
_port = click.IntRange(1, 65535)


class PortError(AgentWorldError):
    """A port of loopback that `option` names cannot be listened on."""

    def __init__(self, port: int, option: str, why: str) -> None:
        super().__init__(port, option, why)
        self.port, self.option, self.why = port, option, why

    def __str__(self) -> str:
        return f"port {self.port} of {LOOPBACK} cannot be used ({self.why}); choose another with {self.option}"


@click.command()
@click.option("--dagster-port", type=_port, default=3000, show_default=True, help="Where Dagster's page is served.")
@click.option("--mlflow-port", type=_port, default=5001, show_default=True, help="Where MLflow's page is served.")
@lake_option
def command(lake: str, dagster_port: int, mlflow_port: int) -> None:
    """Open Dagster (webserver and daemon) and MLflow over this lake; Ctrl-C (or SIGTERM) ends both.

    What Dagster's page materialises has the settings of the lake's last run.
    """
    from agent_world.home import service_home
    from dagster_project.loop import instance_of

    opened = open_world(lake)
    _check_ports({"--dagster-port": dagster_port, "--mlflow-port": mlflow_port})
    home = service_home(lake)
    with instance_of(lake):
        environment = os.environ | {"AGENT_WORLD_LAKE": lake, "DAGSTER_HOME": str(home / "dagster")} | _settings(opened)
    dagster = ["-m", "dagster", "dev", "-m", "dagster_project.definitions", "-h", LOOPBACK, "-p", str(dagster_port)]
    mlflow = [
        "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{home / 'mlflow.db'}",
        "--artifacts-destination", str(home / "mlflow-artifacts"), "--host", LOOPBACK, "--port", str(mlflow_port),
        "--workers", "1",
    ]  # fmt: skip
    click.echo(
        f"Dagster  http://{LOOPBACK}:{dagster_port}\nMLflow   http://{LOOPBACK}:{mlflow_port}\nCtrl-C ends both."
    )
    signal.signal(signal.SIGTERM, _interrupt)
    # A group of its own for each: both start helpers that outlive them when only they are asked to end.
    services = [
        subprocess.Popen([sys.executable, *arguments], env=environment, start_new_session=True)
        for arguments in (dagster, mlflow)
    ]
    try:
        for service in services:
            service.wait()
    except KeyboardInterrupt:
        pass
    finally:
        for service in services:
            _end(service)


def _settings(opened: World) -> dict[str, str]:
    """The variable by which the code location learns the settings of the last run, when there was one."""
    from agent_world.codec import encode
    from dagster_project.runs import last_run

    last = last_run(opened)
    return {"AGENT_WORLD_SETTINGS": json.dumps(encode(last.settings))} if last else {}


def _check_ports(ports: Mapping[str, int]) -> None:
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
