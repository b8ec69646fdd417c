"""A task over MCP, as an episode: a client is told what to do, acts with the tools, and hands in its answer once.

It gets what a policy gets in a rollout, and of the outcome no more than its status: what it was judged by stays here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from agent_world.environments.arguments import complaint
from agent_world.environments.model import Json
from agent_world.rollouts.episode import Episode, PinMismatchError, judge_together
from agent_world.rollouts.model import Observation, OutcomeStatus, Step
from agent_world.rollouts.rewards import check_judgeable
from agent_world.serving.exclusive import Exclusive
from agent_world.serving.history import forget
from agent_world.serving.limits import CallBudget, ServingLimits, call_limit
from agent_world.serving.mcp.faults import blaming
from agent_world.serving.mcp.offer import Offer, StateOf
from agent_world.serving.mcp.prompts import said
from agent_world.serving.mcp.tools import PublishedTool, failed, no_such_tool, refusal, structured
from agent_world.serving.metrics import Metrics

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from agent_world.sandbox import Sandbox
    from agent_world.world import BoundTask

SUBMIT = "submit_answer"
PROMPT = "task"
REPLY = "reply_to_user"
_REPLY_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "what you say to the user"}},
    "required": ["text"],
    "additionalProperties": False,
}
_HEARD_SCHEMA = {
    "type": "object",
    "properties": {"user": {"type": "string", "description": "what the user says"}},
    "required": ["user"],
    "additionalProperties": False,
}
_OUTCOME_SCHEMA = {
    "type": "object",
    "properties": {"outcome": {"enum": ["pass", "fail", "infra_error"], "description": "how the episode ended"}},
    "required": ["outcome"],
    "additionalProperties": False,
}
_log = logging.getLogger(__name__)


def task_offer(
    bound: BoundTask,
    *,
    sandbox: Sandbox | None = None,
    limits: ServingLimits | None = None,
    metrics: Metrics | None = None,
) -> Offer:
    """An MCP server on which every client has one attempt at the task.

    Raises:
        PinMismatchError: the environment is not the one that the task pins.
        UnjudgeableTaskError: nothing could fail this task.
    """
    task, environment = bound.task, bound.environment
    if task.environments != (environment.version,):
        raise PinMismatchError(task.task_id, task.environments, environment.version)
    check_judgeable(task)
    counted, calls = metrics or Metrics(), (limits or ServingLimits()).calls
    return Offer(
        name=task.task_id,
        server=lambda state_of: _Handlers(bound, state_of).server(),
        open=lambda: Attempt(bound, sandbox=sandbox, calls=calls, metrics=counted),
    )


class Seen(NamedTuple):
    """What a policy sees of a step, and the whole value where that was cut."""

    observation: Observation
    whole: Json = None


class Attempt:
    """What one client holds: an episode that its first step opens. It has so many `calls`, and one answer."""

    def __init__(self, bound: BoundTask, *, sandbox: Sandbox | None, calls: int, metrics: Metrics) -> None:
        self._bound, self._budget, self._metrics = bound, CallBudget(calls), metrics
        self._opened = self._ended = False
        self._episode = Exclusive(lambda: self._open(sandbox))

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Seen:
        """Call a tool of the environment."""
        return await self._take(tool, lambda episode: episode.call(tool, arguments))

    async def reply(self, text: str) -> Observation:
        """Say something to the user."""
        return (await self._take(REPLY, lambda episode: episode.reply(text))).observation

    async def answer(self, value: Json) -> OutcomeStatus | Observation:
        """Give the answer and have it judged; an observation when it is too late for one, or it is too long."""
        return await self._episode.use(lambda episode: self._answered(episode, value))

    def stop(self) -> None:
        """End what runs in it."""
        self._episode.stop()

    async def close(self) -> None:
        """Free everything. Without an answer nothing came of it."""
        await self._episode.close()
        if self._opened and not self._ended:
            self._ended = True
            self._metrics.outcomes.add(self._bound.task.task_id, "abandoned")

    async def _take(self, name: str, step: Callable[[Episode], Observation]) -> Seen:
        if not self._budget.spend():
            return Seen(call_limit(self._budget))
        began = time.monotonic()
        seen = await self._episode.use(lambda episode: self._taken(episode, step))
        self._metrics.calls.add(self._bound.task.task_id, name, seen.observation.status)
        self._metrics.call_seconds.observe(time.monotonic() - began, self._bound.task.task_id)
        return seen

    def _open(self, sandbox: Sandbox | None) -> Episode:
        episode = self._bound.episode(sandbox=sandbox)
        self._opened = True
        self._note_end(episode)
        return episode

    def _taken(self, episode: Episode, step: Callable[[Episode], Observation]) -> Seen:
        if episode.over:
            return Seen(_over(episode))
        observation = step(episode)
        self._note_end(episode)
        whole = episode.uncut.get(len(episode.steps) - 1)
        forget(episode)
        return Seen(observation, whole)

    def _answered(self, episode: Episode, value: Json) -> OutcomeStatus | Observation:
        if episode.over:
            return _over(episode)
        observation = episode.take(Step(kind="answer", answer=value))
        forget(episode)
        if not episode.over:
            return observation
        judge_together([episode])
        self._note_end(episode)
        assert episode.outcome is not None, "it was judged"
        return episode.outcome.status

    def _note_end(self, episode: Episode) -> None:
        if self._ended or episode.outcome is None:
            return
        self._ended = True
        task, outcome = self._bound.task.task_id, episode.outcome
        self._metrics.outcomes.add(task, outcome.status)
        if outcome.status == "infra_error":
            _log.warning("an episode of task %s ended as infra_error: %s", task, outcome.detail)


class _Handlers:
    """What requests come to; in whose attempt, `state_of` says."""

    def __init__(self, bound: BoundTask, state_of: StateOf) -> None:
        self._state_of = state_of
        self._task, environment = bound.task, bound.environment
        self._environment = environment.title
        self._tools = {tool.name: PublishedTool(tool.name, tool.public()) for tool in environment.tools}
        self._submit, self._reply = _free(SUBMIT, self._tools), _free(REPLY, self._tools)
        submit = types.Tool(
            name=self._submit,
            description="Give the final answer and end the episode. Only the first answer counts.",
            input_schema=dict(self._task.answer_schema),
            output_schema=_OUTCOME_SCHEMA,
            annotations=types.ToolAnnotations(
                read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
            ),
        )
        reply = types.Tool(
            name=self._reply,
            description="Say something to the user who gave you the task, and hear what they answer.",
            input_schema=_REPLY_SCHEMA,
            output_schema=_HEARD_SCHEMA,
            annotations=types.ToolAnnotations(
                read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
            ),
        )
        tools = [*(published.listed for published in self._tools.values()), reply, submit]
        self._listed = types.ListToolsResult(tools=tools)

    def server(self) -> Server[Any]:
        """The MCP server."""
        server: Server[Any] = Server(
            self._task.task_id,
            title=f"A task in {self._environment}",
            instructions=self._instructions(),
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
        )
        server.middleware.append(blaming)
        return server

    async def list_tools(self, _context: ServerRequestContext, _params: Any) -> types.ListToolsResult:
        return self._listed

    async def call_tool(
        self, context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        attempt: Attempt = self._state_of(context)
        arguments = params.arguments or {}
        if params.name == self._submit:
            return await self._submitted(attempt, arguments)
        if params.name == self._reply:
            return await self._said(attempt, arguments)
        if params.name not in self._tools:
            return no_such_tool(params.name)
        return self._tools[params.name].result(*await attempt.call(params.name, arguments))

    async def list_prompts(self, _context: ServerRequestContext, _params: Any) -> types.ListPromptsResult:
        prompt = types.Prompt(name=PROMPT, title="The task", description="What is to be done in this episode.")
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(
        self, _context: ServerRequestContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if params.name != PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt called {params.name}.")
        return said(self._instructions())

    async def _submitted(self, attempt: Attempt, answer: Mapping[str, Json]) -> types.CallToolResult:
        if (problem := complaint(self._task.answer_schema, answer)) is not None:
            return refusal("invalid_arguments", problem)
        judged = await attempt.answer(answer)
        return failed(judged) if isinstance(judged, Observation) else structured({"outcome": judged})

    async def _said(self, attempt: Attempt, arguments: Mapping[str, Json]) -> types.CallToolResult:
        if (problem := complaint(_REPLY_SCHEMA, arguments)) is not None:
            return refusal("invalid_arguments", problem)
        heard = await attempt.reply(arguments["text"])
        return structured(heard.value) if heard.status == "ok" else failed(heard)

    def _instructions(self) -> str:
        return (
            f"{self._task.instruction}\n\nDo this with the tools of this server. When it is done, call {self._submit} "
            "once: the first answer counts and ends the episode."
        )


def _over(episode: Episode) -> Observation:
    status = episode.outcome.status if episode.outcome else "answered"
    message = f"This episode has ended ({status}). Connect anew for another attempt."
    return Observation(status="refused", value={"error": {"code": "episode_over", "message": message}})


def _free(name: str, taken: Collection[str]) -> str:
    """The name, longer when a tool of the environment is called so."""
    while name in taken:
        name += "_"
    return name
