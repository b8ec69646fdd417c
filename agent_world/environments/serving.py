"""Serves environments over MCP (stdio, streamable HTTP on loopback): each client session is an episode of its own.

On stdio the process is the session; several environments share it, their tools told apart by a prefix. Over HTTP each
has a path of its own, and only protocol versions that open with `initialize` are spoken: from 2026-07-28 on, HTTP has
no sessions, and a client without one has no private state to act on. Such a client is told so and falls back by itself.
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from agent_world.environments.model import Environment, Json, PublicTool
from agent_world.environments.session import Session, open_session
from agent_world.errors import BadInputError
from agent_world.rollouts.model import Observation

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.lowlevel import Server
    from starlette.applications import Starlette

    from agent_world.sandbox import Sandbox

MOST_SESSIONS = 256
IDLE_TIMEOUT_S = 30 * 60
_SESSION = "episode"
_PREFIX = 14
"""Characters of a prefix: with two underscores and a tool's name of 48 they make the 64 that model providers take."""


class LiveSession:
    """A session that several requests of one client may reach at the same time."""

    def __init__(self, session: Session) -> None:
        import anyio

        self.session, self._lock = session, anyio.Lock()

    async def call(self, name: str, arguments: Mapping[str, Json]) -> Observation:
        """One call after the other, none of them on the event loop."""
        from anyio.to_thread import run_sync

        async with self._lock:
            return await run_sync(self.session.call, name, arguments)


def mcp_server(
    environments: Sequence[Environment], session_of: Callable[[ServerRequestContext, Environment], LiveSession]
) -> Server[Any]:
    """One MCP server of these environments; `session_of` says in which session of an environment a request acts.

    The tools of a single environment keep their names, those of several are called as `published_name` says.
    """
    import mcp_types as types
    from mcp.server.lowlevel import Server

    single = environments[0] if len(environments) == 1 else None
    tools = {
        tool.name if single else published_name(environment, tool.name): (environment, tool.public())
        for environment in environments
        for tool in environment.tools
    }
    listed = types.ListToolsResult(tools=[_published(name, tool) for name, (_, tool) in tools.items()])

    async def list_tools(_context: ServerRequestContext, _params: Any) -> types.ListToolsResult:
        return listed

    async def call_tool(context: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in tools:
            error = {"code": "unknown_tool", "message": f"There is no tool called {params.name}."}
            return _result(Observation(status="invalid", value={"error": error}))
        environment, tool = tools[params.name]
        live = session_of(context, environment)
        return _result(await live.call(tool.name, params.arguments or {}))

    return Server(
        single.environment_id if single else "agent-world",
        title=single.title if single else ", ".join(environment.title for environment in environments),
        instructions=single.description if single else "\n".join(map(_introduced, environments)),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def published_name(environment: Environment, tool: str) -> str:
    """What a tool is called beside those of other environments: ``airport-cd6b91__get_airport``.

    The prefix is the environment's key; of a long one its start and the hash that it ends with.
    """
    key = environment.environment_id
    prefix = key if len(key) <= _PREFIX else f"{key[: _PREFIX - 7].rstrip('-')}{key[-7:]}"
    return f"{prefix}__{tool}"


def http_app(environments: Sequence[Environment], *, seed: int = 0, sandbox: Sandbox | None = None) -> Starlette:
    """All environments in one web application, each at the path that `paths` gives it."""
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.applications import Starlette
    from starlette.routing import Route

    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=["127.0.0.1:*", "localhost:*"],
        allowed_origins=["http://127.0.0.1:*", "http://localhost:*"],
    )
    managers = {
        path: StreamableHTTPSessionManager(
            _stateful_server(environment, seed, sandbox),
            security_settings=security,
            session_idle_timeout=IDLE_TIMEOUT_S,
            max_sessions=MOST_SESSIONS,
        )
        for path, environment in zip(paths(environments), environments, strict=True)
    }

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for manager in managers.values():
                await stack.enter_async_context(manager.run())
            yield

    routes = [Route(path, endpoint=StreamableHTTPASGIApp(manager)) for path, manager in managers.items()]
    return Starlette(routes=routes, lifespan=lifespan)


def paths(environments: Sequence[Environment]) -> list[str]:
    """The URL path of each environment: `/mcp` for a single one, else one below its key."""
    if len(environments) == 1:
        return ["/mcp"]
    return [f"/{environment.environment_id}/mcp" for environment in environments]


async def serve_stdio(environments: Sequence[Environment], *, seed: int = 0, sandbox: Sandbox | None = None) -> None:
    """Serve one client on the standard streams until it leaves, with a session in each of the environments.

    Raises:
        BadInputError: an environment is named twice.
    """
    from mcp.server.stdio import stdio_server

    _refuse_twice(environments)
    with ExitStack() as stack:
        live = {
            environment.environment_id: LiveSession(stack.enter_context(open_session(environment, seed, sandbox)))
            for environment in environments
        }
        server = mcp_server(environments, lambda _context, environment: live[environment.environment_id])
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


async def serve_http(
    environments: Sequence[Environment],
    *,
    port: int,
    seed: int = 0,
    sandbox: Sandbox | None = None,
    announce: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve any number of clients on this port of loopback until cancelled or interrupted; 0 takes a free port.

    `announce` is told the URL of each environment as soon as clients can connect.

    Raises:
        BadInputError: the port is taken, or an environment is named twice.
    """
    import uvicorn

    _refuse_twice(environments)
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise BadInputError(f"port {port}", str(error), "choose another port") from None
    with listening:
        app = http_app(environments, seed=seed, sandbox=sandbox)
        config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=1)
        for path in paths(environments):
            announce(f"http://127.0.0.1:{listening.getsockname()[1]}{path}")
        await uvicorn.Server(config).serve(sockets=[listening])


def _stateful_server(environment: Environment, seed: int, sandbox: Sandbox | None) -> Server[Any]:
    """A server of which every connection has a session, opened by its first call and ended with it."""

    def session_of(context: ServerRequestContext, environment: Environment) -> LiveSession:
        connection = context.session._connection  # mcp 2.3 gives handlers no public way to it
        if _SESSION not in connection.state:
            session = open_session(environment, seed, sandbox)
            connection.exit_stack.callback(session.close)
            connection.state[_SESSION] = LiveSession(session)
        return connection.state[_SESSION]

    server = mcp_server([environment], session_of)
    server.middleware.append(_only_with_a_session)
    return server


async def _only_with_a_session(ctx: ServerRequestContext, call_next: CallNext) -> HandlerResult:
    """Refuse versions without sessions, naming those with."""
    import mcp_types as types
    from mcp.shared.exceptions import MCPError
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    if ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise MCPError(
            types.UNSUPPORTED_PROTOCOL_VERSION,
            "These environments keep state: open a session with `initialize`.",
            {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": ctx.protocol_version},
        )
    return await call_next(ctx)


def _refuse_twice(environments: Sequence[Environment]) -> None:
    """Paths and prefixes come from keys: two versions of one environment could not be told apart."""
    keys = [environment.environment_id for environment in environments]
    for key in keys:
        if keys.count(key) > 1:
            raise BadInputError(f"environment {key}", "named twice", "serve one version of it, once")


def _introduced(environment: Environment) -> str:
    return f"Tools {published_name(environment, '')}*: {environment.title}. {environment.description}"


def _published(name: str, tool: PublicTool) -> types.Tool:
    import mcp_types as types

    return types.Tool(
        name=name,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(tool.output_schema) if tool.output_schema.get("type") == "object" else None,
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.writes,
            idempotent_hint=not tool.writes,
            open_world_hint=False,
        ),
    )


def _result(observation: Observation) -> types.CallToolResult:
    import mcp_types as types

    text = types.TextContent(type="text", text=json.dumps(observation.value, ensure_ascii=False))
    if observation.status == "ok":
        return types.CallToolResult(content=[text], structured_content=observation.value)
    return types.CallToolResult(content=[text], is_error=True)
