"""What the commands that serve something share: their options, and how a server is run."""

from __future__ import annotations

import functools
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from agent_world.serving.limits import ServingLimits
    from agent_world.serving.mcp.offer import Offer
    from agent_world.serving.metrics import Metrics
    from agent_world.serving.tasks import TaskSource

TOKEN_VARIABLE = "AGENT_WORLD_TOKEN"
_ERRORS_OF_THIS_PROCESS = "-"
_MOST_FILES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """How to serve. All but `transport` and `calls` are for http; `access_log` is a file, or - for standard error."""

    transport: Literal["stdio", "http"]
    host: str
    port: int
    token_file: Path | None
    allow_host: tuple[str, ...]
    max_sessions: int
    idle_minutes: float
    max_body_kib: int
    max_calls: int
    access_log: str

    @property
    def limits(self) -> ServingLimits:
        """The limits among them."""
        from agent_world.serving.limits import ServingLimits

        return ServingLimits(
            sessions=self.max_sessions,
            idle_s=60 * self.idle_minutes,
            body_bytes=1024 * self.max_body_kib,
            calls=self.max_calls,
        )

    def token(self) -> str | None:
        """The token, from its file, else from the environment; None when there is none."""
        if self.token_file is not None:
            return self.token_file.read_text().strip()
        return os.environ.get(TOKEN_VARIABLE) or None


_FOR_HTTP = {
    "host": click.option(
        "--host", default="127.0.0.1", show_default=True,
        help=f"Address to listen on. Any but loopback needs a token: in {TOKEN_VARIABLE}, or by --token-file.",
    ),
    "port": click.option(
        "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="Port; 0: any free one."
    ),
    "token_file": click.option(
        "--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
        help="File with the token that clients send as `Authorization: Bearer <token>`.",
    ),
    "allow_host": click.option(
        "--allow-host", multiple=True, metavar="NAME",
        help="Another name that the server goes by, as behind a proxy; may be repeated.",
    ),
    "max_sessions": click.option(
        "--max-sessions", type=click.IntRange(1), default=256, show_default=True,
        help="MCP sessions and trainers' episodes open at once, both together.",
    ),
    "idle_minutes": click.option(
        "--idle-minutes", type=click.FloatRange(0, min_open=True), default=30, show_default=True,
        help="A session or an episode that nobody asks for this long is ended.",
    ),
    "max_body_kib": click.option(
        "--max-body-kib", type=click.IntRange(1), default=1024, show_default=True, help="Size of a request.",
    ),
    "access_log": click.option(
        "--access-log", default=_ERRORS_OF_THIS_PROCESS, metavar="FILE",
        help="Where a line of JSON for each request goes, instead of standard error.",
    ),
}  # fmt: skip


def serving_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument `options`."""

    @functools.wraps(command)
    def with_options(**arguments: Any) -> Any:
        names = ServingOptions.__dataclass_fields__
        options = ServingOptions(**{name: arguments.pop(name) for name in names})
        if options.transport == "stdio":
            _refuse_what_is_for_http()
        return command(options=options, **arguments)

    transport = click.option(
        "--transport", type=click.Choice(["stdio", "http"]), default="stdio", show_default=True,
        help="stdio: to the client that starts this command. http: to any number of clients.",
    )  # fmt: skip
    calls = click.option(
        "--max-calls", type=click.IntRange(1), default=10_000, show_default=True,
        help="Calls of one session or episode: of tools, replies to the user, reads of documents. An answer is none.",
    )  # fmt: skip
    return functools.reduce(
        lambda wrapped, option: option(wrapped), [*reversed(_FOR_HTTP.values()), calls, transport], with_options
    )


def serve_to_one(offer: Offer) -> None:
    """Serve the client that started this process."""
    import anyio

    from agent_world.serving.mcp.stdio import serve_stdio

    anyio.run(serve_stdio, offer)


def serve_to_many(
    offers: Sequence[Offer], options: ServingOptions, metrics: Metrics, tasks: TaskSource | None = None
) -> None:
    """Serve on a port until interrupted, with episodes of `tasks`; prints the URL of each offer on standard error.

    Raises:
        BadInputError: the port is taken, or others could come and there is no token.
    """
    import anyio

    from agent_world.sandbox import default_sandbox
    from agent_world.serving.access_log import AccessLog
    from agent_world.serving.application import Application, paths
    from agent_world.serving.door import door_for
    from agent_world.serving.http import EVENT_LOOP, serve_http

    door = door_for(options.host, token=options.token(), names=options.allow_host)
    with ExitStack() as stack:
        if options.access_log == _ERRORS_OF_THIS_PROCESS:
            stream = sys.stderr
        else:
            stream = stack.enter_context(Path(options.access_log).open("a", encoding="utf-8"))
        app = Application(offers, tasks=tasks, door=door, limits=options.limits, metrics=metrics, log=AccessLog(stream))

        def announce(origin: str) -> None:
            for path in paths(offers):
                click.echo(f"{origin}{path}", err=True)

        _allow_many_files()
        default_sandbox()  # its first start takes seconds, and what may be wrong with it should be said here
        asked = anyio.run(
            lambda: serve_http(app, host=options.host, port=options.port, announce=announce), backend_options=EVENT_LOOP
        )
    if asked == signal.SIGINT:
        raise KeyboardInterrupt


def _allow_many_files() -> None:
    """A session and its connection keep descriptors: have as many as the host lets us."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if most == resource.RLIM_INFINITY else most
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _refuse_what_is_for_http() -> None:
    context = click.get_current_context()
    for name in _FOR_HTTP:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --transport http.")
