"""Episodes of another machine: the client of the episode API, with the surface that an episode has in process.

```python
from agent_world.serving.episodes.client import EpisodeClient

with EpisodeClient("http://127.0.0.1:8765") as client, client.episode("TASK", seed=7) as episode:
    episode.instruction, episode.tools, episode.answer_schema
    episode.call("search_airports", {"name": "Keflavik"})
    outcome = episode.answer({"iata": "KEF"})
```
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from pydantic import ValidationError

from agent_world.codec import decode
from agent_world.environments.model import Json, PublicTool
from agent_world.errors import AgentWorldError
from agent_world.identity import artifact_id_of
from agent_world.rollouts.episode import EpisodeOverError, History, as_malformed, malformed
from agent_world.rollouts.loop import MAX_STEPS
from agent_world.rollouts.model import Observation, ObservationStatus, Outcome, Policy, Step, Turn
from agent_world.serving.episodes.messages import (
    AnswerRequest,
    CallRequest,
    CreateRequest,
    EpisodeReply,
    EpisodeRequest,
    EpisodesReply,
    ReplyRequest,
    Result,
    StepReply,
    TasksReply,
    rendered,
)
from agent_world.serving.tasks import TaskEntry

T = TypeVar("T")
TIMEOUT_S = 60.0
"""How long one reply may take: more than a tool and a verifier may."""
PATIENCE_S = 120.0
"""How long a request is tried again while the server cannot be reached, or has no room."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0
_CLOSING_PATIENCE_S = 2.0
_AGAIN = frozenset({502, 503, 504})


class EpisodeServerError(AgentWorldError):
    """The server is gone, or failed, or has lost the episode: nothing that the agent did."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(url, why)
        self.url, self.why = url, why

    def __str__(self) -> str:
        return f"{self.url}: {self.why}; see that the server runs and try again"


class RequestRefusedError(AgentWorldError):
    """The server does not take a request: no token, no such task, no room for the batch. `code` says which."""

    def __init__(self, url: str, status: int, code: str, message: str) -> None:
        super().__init__(url, status, code, message)
        self.url, self.status, self.code, self.message = url, status, code, message

    def __str__(self) -> str:
        return f"{self.url}: {self.code} (HTTP {self.status}): {self.message}"


class EpisodeClient:
    """Talks to one server; may be used from several threads. Use it with `with`.

    `url` ends before ``/v1``. A request that got no reply is sent again, as it was, for up to `patience_s` seconds:
    the server does nothing twice.
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout_s: float = TIMEOUT_S, patience_s: float = PATIENCE_S
    ) -> None:
        self.url = url.rstrip("/")
        self._patience_s = patience_s
        self._http = httpx.Client(
            headers={"authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(timeout_s, connect=10.0, pool=None),
            limits=httpx.Limits(max_connections=None),
        )

    def tasks(
        self, *, environment: str | None = None, tier: str | None = None, purpose: str | None = None
    ) -> Iterator[TaskEntry]:
        """All tasks that may be attempted, or those of an environment (key or version), a tier, a purpose.

        Raises:
            EpisodeServerError, RequestRefusedError: as the server answers.
        """
        asked = {"environment": environment, "tier": tier, "purpose": purpose, "limit": "1000"}
        query = {name: value for name, value in asked.items() if value is not None}
        while True:
            page = self.send(TasksReply, "GET", "/v1/tasks", query=query)
            yield from page.tasks
            if page.next is None:
                return
            query["after"] = page.next

    def episode(self, task: str, seed: int = 0) -> RemoteEpisode:
        """A live episode of a task; use it with `with`.

        Raises:
            EpisodeServerError, RequestRefusedError: as the server answers.
        """
        return self.episodes([EpisodeRequest(task=task, seed=seed)])[0]

    def group(self, task: str, samples: int, seed: int = 0) -> list[RemoteEpisode]:
        """`samples` episodes of one task, with the seeds `seed`, `seed` + 1, ...

        Raises:
            EpisodeServerError, RequestRefusedError: as the server answers; no episode was opened then.
        """
        return self.episodes([EpisodeRequest(task=task, seed=seed, samples=samples)])

    def episodes(self, requests: Sequence[EpisodeRequest]) -> list[RemoteEpisode]:
        """All these episodes at once; the caller closes them.

        Raises:
            EpisodeServerError, RequestRefusedError: as the server answers; no episode was opened then.
        """
        body = CreateRequest(episodes=list(requests), key=secrets.token_urlsafe(24))
        return [RemoteEpisode(self, each) for each in self.send(EpisodesReply, "POST", "/v1/episodes", body).episodes]

    def send(
        self,
        expected: type[T],
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        patience_s: float | None = None,
    ) -> T:
        """Send one request of the API, again and again if need be, and read its reply.

        Raises:
            EpisodeServerError: no usable reply within `patience_s` seconds (None: the client's).
            RequestRefusedError: the server does not take it.
        """
        content = None if body is None else rendered(body)
        headers = {} if body is None else {"content-type": "application/json"}
        deadline = time.monotonic() + (self._patience_s if patience_s is None else patience_s)
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                response = self._http.request(
                    method, self.url + path, content=content, headers=headers, params=dict(query or {})
                )
            except httpx.TransportError as error:
                why, asked_s = f"{type(error).__name__}: {error}", 0.0
            else:
                if response.status_code not in _AGAIN:
                    return self._read(expected, response)
                why, asked_s = f"HTTP {response.status_code}: {response.text[:300]}", _retry_after_s(response)
            pause_s = max(wait_s, asked_s)
            if time.monotonic() + pause_s > deadline:
                raise EpisodeServerError(self.url, why)
            time.sleep(pause_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _read(self, expected: type[T], response: httpx.Response) -> T:
        try:
            value = response.json()
            if response.is_success:
                return decode(expected, value)
            code, message = str(value["error"]["code"]), str(value["error"]["message"])
        except (ValueError, ValidationError, KeyError, TypeError, RecursionError):
            why = f"HTTP {response.status_code}, and no reply of the episode API: {response.text[:200]!r}"
            raise EpisodeServerError(self.url, why) from None
        if response.status_code >= 500 or code in ("unknown_episode", "episode_closed", "episode_expired"):
            raise EpisodeServerError(self.url, f"{code}: {message}")
        raise RequestRefusedError(self.url, response.status_code, code, message)

    def close(self) -> None:
        """Close the connections; episodes that are still open expire on the server."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RemoteEpisode:
    """A live episode on a server, with the surface of `agent_world.rollouts.episode.Episode`. Use it with `with`.

    As there, what is not the agent's doing raises nothing: a server that is gone ends the episode as `infra_error`.
    Only an answer shows how it was judged, and no more than the outcome: `outcome.failed` stays empty.
    """

    def __init__(self, client: EpisodeClient, opened: EpisodeReply) -> None:
        self.task, self.environment = opened.task, opened.environment
        self.seed, self.sample, self.name = opened.seed, opened.sample, opened.id
        self.instruction, self.answer_schema = opened.instruction, opened.answer_schema
        self.tools: tuple[PublicTool, ...] = tuple(opened.tools)
        self.steps: History = []
        self.outcome: Outcome | None = None
        self._client, self._path = client, f"/v1/episodes/{opened.id}"
        self._sent = opened.steps
        self._note(opened.outcome)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, name: str, arguments: Mapping[str, Json]) -> Observation:
        """Call one tool."""
        return self.take(Step(kind="tool", tool=name, arguments=arguments))

    def reply(self, text: str) -> Observation:
        """Say something to the user; the environment does not move."""
        return self.take(Step(kind="reply", text=text))

    def answer(self, value: Json) -> Outcome:
        """Give the final answer and have it judged."""
        self.take(Step(kind="answer", answer=value))
        return self.outcome or self.give_up("closed before an answer")

    def take(self, step: Step) -> Observation:
        """Take any step: what comes back is recorded with it. An answer is judged.

        Raises:
            EpisodeOverError: the episode has ended.
            RequestRefusedError: the server does not know this client any more, or it is not the only one.
        """
        if self.outcome is not None:
            raise EpisodeOverError(self.task, self.outcome.status)
        fault = malformed(step)
        if fault is not None:
            observation = _notice("invalid", "malformed_step", fault)
            self.steps.append((as_malformed(step), observation))
            return observation
        try:
            observation = self._send(step)
        except EpisodeServerError as error:
            self.blame("the step", error)
            observation = _notice("error", "harness", "The episode was ended by a fault of the harness.")
        self.steps.append((step, None if step.kind == "answer" else observation))
        return observation

    def give_up(self, why: str) -> Outcome:
        """End the episode without an answer: it fails."""
        if self.outcome is None:
            try:
                result = self._client.send(Result, "DELETE", self._path, patience_s=_CLOSING_PATIENCE_S)
                self._note(result, why)
            except EpisodeServerError as error:
                self.blame("closing the episode", error)
        assert self.outcome is not None
        return self.outcome

    def blame(self, what: str, error: Exception) -> None:
        """End the episode as `infra_error`: `what` was being done, and it was not the agent's doing."""
        if self.outcome is None:
            self.outcome = Outcome(status="infra_error", detail=f"{what}: {type(error).__name__}: {error}")

    @property
    def over(self) -> bool:
        """Whether no further step is possible."""
        return self.outcome is not None

    def turn(self) -> Turn:
        """What a policy gets before its next step, and nothing else."""
        return Turn(
            episode=self.name,
            environment=artifact_id_of(self.environment),
            instruction=self.instruction,
            tools=self.tools,
            answer_schema=self.answer_schema,
            history=tuple((step, observation) for step, observation in self.steps if observation is not None),
            seed=self.seed,
        )

    def close(self) -> None:
        """Free the episode on the server; without an answer it has failed."""
        self.give_up("closed before an answer")

    def _send(self, step: Step) -> Observation:
        n = self._sent + 1
        if step.kind == "answer":
            result = self._client.send(Result, "POST", f"{self._path}/answer", AnswerRequest(n=n, answer=step.answer))
            self._sent = n
            self._note(result)
            return _notice("ok", "ended", "The answer was given.")
        if step.kind == "reply":
            path, body = f"{self._path}/reply", ReplyRequest(n=n, text=step.text or "")
        else:
            path, body = f"{self._path}/call", CallRequest(n=n, tool=step.tool or "", arguments=dict(step.arguments))
        try:
            given = self._client.send(StepReply, "POST", path, body)
        except RequestRefusedError as refused:
            if refused.code != "call_limit":
                raise
            return _notice("refused", "call_limit", refused.message)  # nothing was taken; the answer is still free
        self._sent = n
        self._note(given.outcome)
        return Observation(status=given.status, value=given.value)

    def _note(self, result: Result | None, detail: str = "") -> None:
        if result is not None:
            self.outcome = Outcome(status=result.status, detail=detail)


def play(
    episodes: Sequence[RemoteEpisode], policy: Policy, *, max_steps: int = MAX_STEPS, threads: int = 8
) -> list[Outcome]:
    """Let `policy` act in all `episodes` until each has ended: one `policy.act` for all, `threads` requests at once.

    An episode without an answer after `max_steps` steps has failed. Where the policy raises, its error goes through.
    """
    with ThreadPoolExecutor(threads, thread_name_prefix="episodes") as pool:
        while going := [episode for episode in episodes if not episode.over]:
            steps = policy.act([episode.turn() for episode in going])
            if len(steps) != len(going):
                raise ValueError(f"{policy.name} gave {len(steps)} steps for {len(going)} turns")
            list(pool.map(_advance, going, steps, repeat(max_steps)))
            policy.forget([episode.name for episode in going if episode.over])
    return [episode.outcome for episode in episodes if episode.outcome is not None]


def _advance(episode: RemoteEpisode, step: Step, max_steps: int) -> None:
    episode.take(step)
    if not episode.over and len(episode.steps) >= max_steps:
        episode.give_up(f"no answer within {max_steps} steps")


def _notice(status: ObservationStatus, code: str, message: str) -> Observation:
    return Observation(status=status, value={"error": {"code": code, "message": message}})


def _retry_after_s(response: httpx.Response) -> float:
    """What the server asked for, when it is a number of seconds up to a minute."""
    asked: Any = response.headers.get("retry-after", "")
    return min(float(asked), 60.0) if asked.isdecimal() else 0.0
