"""Environments over MCP: each client acts in sessions of its own.

Tools act, documents are resources, tasks are prompts. There is no judge here: see `serving.mcp.attempts` for a task
that has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from agent_world.environments.model import Environment
from agent_world.errors import BadInputError
from agent_world.serving.limits import CallBudget, ServingLimits
from agent_world.serving.mcp import documents, prompts
from agent_world.serving.mcp.faults import blaming
from agent_world.serving.mcp.offer import Offer, StateOf
from agent_world.serving.mcp.session import EnvironmentSession
from agent_world.serving.mcp.tools import PublishedTool, no_such_tool, published_name
from agent_world.serving.metrics import Metrics

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from agent_world.sandbox import Sandbox
    from agent_world.serving.tasks import TaskEntry, TaskSource

_RESOURCE_NOT_FOUND = -32002


class ClientSessions:
    """What one client holds: a session in each environment, by the key of it."""

    def __init__(self, sessions: dict[str, EnvironmentSession]) -> None:
        self._sessions = sessions

    def of(self, environment: Environment) -> EnvironmentSession:
        """The session in this environment."""
        return self._sessions[environment.environment_id]

    def stop(self) -> None:
        """End what runs in them."""
        for session in self._sessions.values():
            session.stop()

    async def close(self) -> None:
        """Free everything."""
        self.stop()
        for session in self._sessions.values():
            await session.close()


def environment_offer(
    environments: Sequence[Environment],
    *,
    tasks: TaskSource | None = None,
    seed: int = 0,
    sandbox: Sandbox | None = None,
    limits: ServingLimits | None = None,
    metrics: Metrics | None = None,
) -> Offer:
    """One MCP server of these environments; the tools of a single one keep their names, others' get prefixes.

    `tasks` may hold tasks of other environments as well: those of these are offered as prompts.

    Raises:
        BadInputError: an environment is named twice.
    """
    refuse_twice(environments)
    counted, calls = metrics or Metrics(), (limits or ServingLimits()).calls

    def open() -> ClientSessions:
        budget = CallBudget(calls)
        return ClientSessions(
            {
                environment.environment_id: EnvironmentSession(
                    environment, seed=seed, sandbox=sandbox, budget=budget, metrics=counted
                )
                for environment in environments
            }
        )

    return Offer(
        name=environments[0].environment_id if len(environments) == 1 else "agent-world",
        server=lambda state_of: _Handlers(environments, tasks, state_of).server(),
        open=open,
    )


def refuse_twice(environments: Sequence[Environment]) -> None:
    """Paths and prefixes come from keys: two versions of one environment could not be told apart.

    Raises:
        BadInputError: there are two.
    """
    keys = [environment.environment_id for environment in environments]
    for key in keys:
        if keys.count(key) > 1:
            raise BadInputError(f"environment {key}", "named twice", "serve one version of it, once")


class _Handlers:
    """What requests come to; in which session, `state_of` says."""

    def __init__(self, environments: Sequence[Environment], tasks: TaskSource | None, state_of: StateOf) -> None:
        self._environments = {environment.environment_id: environment for environment in environments}
        self._single = environments[0] if len(environments) == 1 else None
        self._tasks, self._state_of = tasks, state_of
        self._tools: dict[str, tuple[Environment, str, PublishedTool]] = {}
        for environment in environments:
            for tool in environment.tools:
                name = tool.name if self._single else published_name(environment, tool.name)
                self._tools[name] = environment, tool.name, PublishedTool(name, tool.public())
        self._listed = types.ListToolsResult(tools=[published.listed for *_, published in self._tools.values()])

    def server(self) -> Server[Any]:
        """The MCP server."""
        single, environments = self._single, self._environments.values()
        server: Server[Any] = Server(
            single.environment_id if single else "agent-world",
            title=single.title if single else ", ".join(environment.title for environment in environments),
            instructions=single.description if single else "\n".join(map(_introduced, environments)),
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts if self._tasks else None,
            on_get_prompt=self.get_prompt if self._tasks else None,
        )
        server.middleware.append(blaming)
        return server

    async def list_tools(self, _context: ServerRequestContext, _params: Any) -> types.ListToolsResult:
        return self._listed

    async def call_tool(
        self, context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in self._tools:
            return no_such_tool(params.name)
        environment, name, published = self._tools[params.name]
        return published.result(await self._session(context, environment).call(name, params.arguments or {}))

    async def list_resources(self, context: ServerRequestContext, _params: Any) -> types.ListResourcesResult:
        found: list[types.Resource] = []
        for environment in self._environments.values():
            if documents.readable(environment):
                found += documents.resources(environment, await self._session(context, environment).state())
        return types.ListResourcesResult(resources=found)

    async def read_resource(
        self, context: ServerRequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        key, path = documents.place_of(params.uri) or ("", "")
        environment = self._environments.get(key)
        text = None
        if environment is not None and path in documents.readable(environment):
            text = documents.text_of(await self._session(context, environment).state(), path)
        if text is None:
            raise MCPError(_RESOURCE_NOT_FOUND, f"There is no resource {params.uri}.")
        contents = types.TextResourceContents(uri=params.uri, mime_type=documents.mime_type(path), text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(
        self, _context: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return prompts.page_of_prompts(await run_sync(self._entries), params.cursor if params else None)

    async def get_prompt(
        self, _context: ServerRequestContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return prompts.prompt(await run_sync(self._entries), params.name)

    def _entries(self) -> list[TaskEntry]:
        assert self._tasks is not None
        versions = {environment.version for environment in self._environments.values()}
        return [entry for entry in self._tasks.entries() if entry.environment in versions]

    def _session(self, context: ServerRequestContext, environment: Environment) -> EnvironmentSession:
        return self._state_of(context).of(environment)


def _introduced(environment: Environment) -> str:
    return f"Tools {published_name(environment, '')}*: {environment.title}. {environment.description}"
