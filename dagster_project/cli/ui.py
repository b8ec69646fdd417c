"""`agent-world ui`: Dagster and MLflow on loopback over one lake."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import click

from dagster_project.cli.common import lake_option


@click.command()
@click.option("--dagster-port", type=int, default=3000, show_default=True)
@click.option("--mlflow-port", type=int, default=5001, show_default=True)
@lake_option
def command(lake: str, dagster_port: int, mlflow_port: int) -> None:
    """Open Dagster (webserver and daemon) and MLflow over this lake; Ctrl-C (or SIGTERM) ends both."""
    from agent_world.home import service_home
    from dagster_project.loop import instance_of

    home = service_home(lake)
    with instance_of(lake):
        environment = os.environ | {"AGENT_WORLD_LAKE": lake, "DAGSTER_HOME": str(home / "dagster")}
    dagster = ["-m", "dagster", "dev", "-m", "dagster_project.definitions", "-h", "127.0.0.1", "-p", str(dagster_port)]
    mlflow = [
        "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{home / 'mlflow.db'}",
        "--artifacts-destination", str(home / "mlflow-artifacts"), "--host", "127.0.0.1", "--port", str(mlflow_port),
        "--workers", "1",
    ]  # fmt: skip
    click.echo(f"Dagster  http://127.0.0.1:{dagster_port}\nMLflow   http://127.0.0.1:{mlflow_port}\nCtrl-C ends both.")
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


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _end(service: subprocess.Popen[bytes], patience: float = 20) -> None:
    """Ask the whole group of `service` to end, and make it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(service.pid, number)
        with suppress(subprocess.TimeoutExpired):
            service.wait(timeout=patience)
