"""`agent-world service`: one server of a deployment in the foreground, for containers and units."""

from __future__ import annotations

import os
import sys
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import click

from dagster_project.cli.common import LOOPBACK, lake_option

_EVERYWHERE = ("0.0.0.0", "::")
_PATIENCE_S = 5

_port = click.IntRange(1, 65535)
F = TypeVar("F", bound=Callable[..., None])

_check = click.option(
    "--check", is_flag=True, help="Start nothing; exit 0 if the one that runs with these options is well, else 1."
)


class _Address(click.ParamType):
    """HOST:PORT."""

    name = "HOST:PORT"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        host, _, port = value.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            self.fail(f"{value!r} is not HOST:PORT, such as {LOOPBACK}:4000", param, ctx)
        return host, int(port)


_code = click.option(
    "--code", type=_Address(), default=f"{LOOPBACK}:4000", show_default=True, help="Where the code server listens."
)


def _listens(port: int) -> Callable[[F], F]:
    """Give a command --host and --port."""

    def decorate(command: F) -> F:
        at = click.option("--port", type=_port, default=port, show_default=True, help="Where it listens.")
        on = click.option(
            "--host", default=LOOPBACK, show_default=True, metavar="ADDRESS",
            help="Address to listen on; whoever reaches it may do what you may.",
        )  # fmt: skip
        return on(at(command))

    return decorate


@click.group()
def command() -> None:
    """Run one server of a deployment in the foreground; `agent-world ui` runs all of them on one machine.

    All servers of a lake need the same --lake (or AGENT_WORLD_LAKE), AGENT_WORLD_POSTGRES_URL and AWS variables.
    """


@command.command()
@_listens(4000)
@_check
@lake_option
def code(lake: str, host: str, port: int, check: bool) -> None:
    """Code server: loads the assets, starts runs.

    Runs work where this server is: it needs the processors, the sandbox and the room of a run.
    """
    from dagster_project import services

    if check:
        _become(services.code_check(_reachable(host), port), {})
    _become(services.code_server(host, port), services.environment(lake) | services.last_settings(lake))


@command.command()
@_listens(3000)
@_code
@_check
@lake_option
def webserver(lake: str, host: str, port: int, code: tuple[str, int], check: bool) -> None:
    """Dagster's pages and GraphQL."""
    if check:
        _ask(f"http://{_reachable(host)}:{port}/server_info")
        return
    from dagster_project import services

    _become(services.webserver(host, port, code), services.environment(lake))


@command.command()
@_code
@_check
@lake_option
def daemon(lake: str, code: tuple[str, int], check: bool) -> None:
    """Dagster's queue of runs, backfills, sensors.

    Exactly one for a lake.
    """
    from dagster_project import services

    arguments = services.daemon_check() if check else services.daemon(code)
    _become(arguments, services.environment(lake))


@command.command()
@_listens(5001)
@_check
@lake_option
def mlflow(lake: str, host: str, port: int, check: bool) -> None:
    """MLflow's pages and artifacts.

    Runs write to its database and its store themselves.
    """
    if check:
        _ask(f"http://{_reachable(host)}:{port}/health")
        return
    from dagster_project import services

    _become(services.mlflow(lake, host, port), services.environment(lake))


def _become(arguments: Sequence[str], variables: Mapping[str, str]) -> None:
    """Go on as another program: signals and exit status are its own."""
    sys.stdout.flush()
    os.execve(arguments[0], list(arguments), os.environ | variables)


def _reachable(host: str) -> str:
    return LOOPBACK if host in _EVERYWHERE else host


def _ask(url: str) -> None:
    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE_S):
            return
    except OSError as error:
        why = getattr(error, "reason", error)
        raise click.ClickException(f"{url} does not answer: {why}; start it, or name where it listens") from None
