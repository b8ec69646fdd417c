"""What goes over the wire of the episode API: requests and replies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, TypeVar

from pydantic import Field, Strict, TypeAdapter, ValidationError

from agent_world.environments.model import Json, PublicTool
from agent_world.identity import VersionId
from agent_world.rollouts.model import ObservationStatus, OutcomeStatus
from agent_world.sandbox import strict_json
from agent_world.sandbox.strict_json import StrictJsonError
from agent_world.serving.refusals import Code, RefusedError
from agent_world.serving.tasks import TaskEntry
from agent_world.tasks.model import Purpose, Tier

T = TypeVar("T")
_FORBID: Any = {"extra": "forbid"}
_Seed = Annotated[int, Strict(), Field(ge=0, lt=1 << 63)]
_Count = Annotated[int, Strict(), Field(ge=1, lt=1 << 31)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRequest:
    """Episodes to open of one task: `samples` of them, with the seeds `seed`, `seed` + 1, ...

    `task` is a version or a key of a task, or a unique start of one. The seed is the policy's own; that of the
    environment belongs to the task.
    """

    __pydantic_config__ = _FORBID

    task: str
    seed: _Seed = 0
    samples: _Count = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest:
    """A batch of episodes, opened all or none.

    A request that is repeated with the same `key` (a long random text of the client's) gets the episodes of the first
    one, so that a lost reply loses nothing.
    """

    __pydantic_config__ = _FORBID

    episodes: Annotated[list[EpisodeRequest], Field(min_length=1)]
    key: Annotated[str, Field(min_length=16, max_length=128)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A tool call as step `n`: the steps of an episode, of whatever kind, are numbered from 1 by its client.

    A step that is repeated with the same number and content is not taken twice: it gets the recorded reply.
    """

    __pydantic_config__ = _FORBID

    n: _Count
    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRequest:
    """Words to the user as step `n`, numbered as for a call; the environment does not move."""

    __pydantic_config__ = _FORBID

    n: _Count
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRequest:
    """The final answer as step `n`, in the shape of the episode's `answer_schema`. It is judged once."""

    __pydantic_config__ = _FORBID

    n: _Count
    answer: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How an episode ended. Pass and fail have a reward, 1 and 0; an infra_error was not the agent's doing: null."""

    status: OutcomeStatus
    reward: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReply:
    """What came back from step `n`.

    ok: `value` is the result of the tool, or ``{"user": words}``. refused: a business rule said no. invalid: no such
    tool, or arguments that its schema forbids. error: the tool raised, hung or died. For the last three `value` is
    ``{"error": {"code", "message"}}``. `outcome` is null until the episode has ended.
    """

    n: int
    status: ObservationStatus
    value: Json
    outcome: Result | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeReply:
    """An episode: what its policy gets, the number of steps taken, and how it ended.

    `id` is a secret: who knows it may act. `task` and `environment` are exact versions; `seed` is the policy's own.
    """

    id: str
    task: VersionId
    environment: VersionId
    seed: int
    sample: int
    instruction: str
    tools: list[PublicTool]
    answer_schema: dict[str, Any]
    steps: int
    outcome: Result | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodesReply:
    """The episodes of a batch, in the order asked for, the samples of a task one after the other."""

    episodes: list[EpisodeReply]


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksQuery:
    """Which tasks to list, in the query of the URL."""

    __pydantic_config__ = _FORBID

    environment: Annotated[str | None, Field(description="only tasks of this environment: its key or version")] = None
    tier: Annotated[Tier | None, Field(description="only tasks of this tier")] = None
    purpose: Annotated[Purpose | None, Field(description="only tasks that were made for this")] = None
    after: Annotated[str, Field(description="only tasks after this version: `next` of the page before")] = ""
    limit: Annotated[int, Field(ge=1, le=1000, description="tasks a page")] = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksReply:
    """One page of tasks; `next` is the `after` of the next page, null on the last one."""

    tasks: list[TaskEntry]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """What was wrong, for programs and for people."""

    code: Code
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReply:
    """A request that was refused; nothing has happened."""

    error: ErrorBody


def json_of(body: bytes) -> Json:
    """The value of a request body.

    Raises:
        RefusedError: it is not JSON, has more than one meaning, or is nested too deeply.
    """
    try:
        return strict_json.loads(body)
    except StrictJsonError as error:
        raise RefusedError(400, "malformed_json", f"The body is not JSON that can be read: {error}.") from None


def request_of(adapter: TypeAdapter[T], value: Json) -> T:
    """The request that a JSON value is.

    Raises:
        RefusedError: a field is missing, unknown or of the wrong type; the message names it.
    """
    if not isinstance(value, dict):
        raise RefusedError(422, "invalid_request", "the body: an object is expected")
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        wrong = [
            f"{'.'.join(map(str, item['loc']))}: {item['msg']}"
            for item in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        raise RefusedError(422, "invalid_request", "; ".join(wrong[:5])[:1000]) from None


def rendered(value: object) -> bytes:
    """The JSON text of a message.

    Raises:
        ValueError, RecursionError: it holds what JSON cannot carry.
    """
    text = json.dumps(value, default=_fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def _fields(value: Any) -> dict[str, Any]:
    return {each.name: getattr(value, each.name) for each in fields(value)}
