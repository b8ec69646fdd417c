"""Episodes over HTTP for trainers on other machines: a versioned JSON API below ``/v1``, with its own description."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from anyio.to_thread import run_sync
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from agent_world.identity import artifact_id_of
from agent_world.lake.errors import NotFoundError
from agent_world.rollouts.model import Step
from agent_world.serving.episodes.messages import (
    AnswerRequest,
    CallRequest,
    CreateRequest,
    EpisodesReply,
    ReplyRequest,
    TasksQuery,
    TasksReply,
    json_of,
    rendered,
    request_of,
)
from agent_world.serving.episodes.numbered import Wanted
from agent_world.serving.episodes.openapi import OPERATIONS, document, page
from agent_world.serving.refusals import RefusedError
from agent_world.serving.tasks import AmbiguousTaskError, TaskEntry

if TYPE_CHECKING:
    from starlette.routing import BaseRoute
    from starlette.types import Receive, Scope, Send

    from agent_world.serving.episodes.registry import EpisodeRegistry
    from agent_world.serving.tasks import TaskSource

_log = logging.getLogger(__name__)
_CREATE, _QUERY = TypeAdapter(CreateRequest), TypeAdapter(TasksQuery)
_CALL, _REPLY, _ANSWER = TypeAdapter(CallRequest), TypeAdapter(ReplyRequest), TypeAdapter(AnswerRequest)
T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


def episode_routes(tasks: TaskSource, episodes: EpisodeRegistry) -> list[BaseRoute]:
    """The API over the tasks of `tasks`, whose live episodes `episodes` holds; the routes are absolute (``/v1/...``).

    ``POST /v1/episodes``, ``GET`` and ``DELETE /v1/episodes/{id}``, ``POST /v1/episodes/{id}/{call,reply,answer}``,
    ``GET /v1/tasks``, ``/v1/openapi.json``, ``/v1/docs``. What is refused is raised, for the application around it to
    answer; so are the token, the Host header, the size of bodies and metrics its business.
    """
    handlers = _Handlers(tasks, episodes)
    by_path: dict[str, dict[str, Handler]] = {
        "/v1/openapi.json": {"GET": handlers.openapi},
        "/v1/docs": {"GET": handlers.docs},
    }
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method.upper()] = getattr(handlers, operation.name)
    found: list[BaseRoute] = [Route(path, _Resource(methods)) for path, methods in by_path.items()]
    return [*found, Route("/v1/{path:path}", _Resource({}))]


class _Handlers:
    """One method for each operation of the API, called as the operation is."""

    def __init__(self, tasks: TaskSource, episodes: EpisodeRegistry) -> None:
        self._tasks, self._episodes = tasks, episodes

    async def list_tasks(self, request: Request) -> Response:
        query = request_of(_QUERY, dict(request.query_params))
        return await run_sync(lambda: _json(self._page(query)))

    async def open_episodes(self, request: Request) -> Response:
        asked = await self._read(request, _CREATE)
        wanted = await run_sync(self._wanted, asked)
        opened = await self._episodes.create(wanted, asked.key)
        return await run_sync(lambda: _json(EpisodesReply(episodes=opened), HTTPStatus.CREATED))

    async def show_episode(self, request: Request) -> Response:
        return _json(await self._episodes.show(_id(request)))

    async def call_tool(self, request: Request) -> Response:
        asked = await self._read(request, _CALL)
        step = Step(kind="tool", tool=asked.tool, arguments=asked.arguments)
        return _json(await self._episodes.step(_id(request), asked.n, step))

    async def reply_to_user(self, request: Request) -> Response:
        asked = await self._read(request, _REPLY)
        return _json(await self._episodes.step(_id(request), asked.n, Step(kind="reply", text=asked.text)))

    async def answer(self, request: Request) -> Response:
        asked = await self._read(request, _ANSWER)
        return _json(await self._episodes.answer(_id(request), asked.n, asked.answer))

    async def close_episode(self, request: Request) -> Response:
        return _json(await self._episodes.close(_id(request)))

    async def openapi(self, _request: Request) -> Response:
        return _json(document())

    async def docs(self, _request: Request) -> Response:
        return HTMLResponse(
            page(), headers={"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        )

    async def _read(self, request: Request, adapter: TypeAdapter[T]) -> T:
        return request_of(adapter, json_of(await _body(request)))

    def _page(self, query: TasksQuery) -> TasksReply:
        entries = self._tasks.entries()
        start = bisect_right(entries, query.after, key=lambda entry: entry.task)
        matching = (entry for entry in islice(entries, start, None) if _matches(entry, query))
        found = list(islice(matching, query.limit + 1))
        more = len(found) > query.limit
        return TasksReply(tasks=found[: query.limit], next=found[query.limit - 1].task if more else None)

    def _wanted(self, asked: CreateRequest) -> list[Wanted]:
        number, most = sum(each.samples for each in asked.episodes), self._episodes.limits.sessions
        if number > most:
            why = f"{number} episodes are more than the {most} that this server ever has at once."
            raise RefusedError(422, "batch_too_large", why)
        wanted = []
        for each in asked.episodes:
            try:
                bound = self._tasks.task(each.task)
            except NotFoundError:
                why = f"There is no task that only {each.task[:200]!r} can mean; /v1/tasks lists them."
                raise RefusedError(404, "unknown_task", why) from None
            except AmbiguousTaskError as ambiguous:
                raise RefusedError(422, "ambiguous_task", f"{ambiguous}.") from None
            wanted += [Wanted(bound=bound, seed=each.seed + sample, sample=sample) for sample in range(each.samples)]
        return wanted


class _Resource:
    """One path: finds the handler of a method, and makes a refusal of whatever else it raises."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    @property
    def methods(self) -> Collection[str]:
        """The methods that this path takes."""
        return self._handlers.keys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        handler = self._handler(request.method)
        try:
            response = await handler(request)
        except RefusedError:
            raise
        except Exception:
            # The one place where a fault of the server becomes a reply; what it was stays in the log.
            _log.exception("%s failed", request.method)
            raise RefusedError(500, "internal", "The server failed; its log says why.") from None
        await response(scope, receive, send)

    def _handler(self, method: str) -> Handler:
        if not self._handlers:
            raise RefusedError(404, "no_such_path", "There is nothing here; /v1/docs says what there is.")
        if method not in self._handlers:
            taken = ", ".join(self._handlers)
            raise RefusedError(405, "method_not_allowed", f"This path takes {taken}.", {"Allow": taken})
        return self._handlers[method]


async def _body(request: Request) -> bytes:
    declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if declared != "application/json":
        # Also what keeps a web page from posting here unasked: a browser asks first before it sends this type.
        raise RefusedError(415, "not_json", "Send the body as content-type application/json.")
    return await request.body()


def _matches(entry: TaskEntry, query: TasksQuery) -> bool:
    return (
        query.environment in (None, entry.environment, artifact_id_of(entry.environment))
        and query.tier in (None, entry.tier)
        and query.purpose in (None, entry.purpose)
    )


def _id(request: Request) -> str:
    return request.path_params["id"]


def _json(message: object, status: int = 200) -> Response:
    return Response(rendered(message), status, media_type="application/json")
