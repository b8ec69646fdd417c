"""One client for any OpenAI-compatible endpoint: retries, cost metering, cassettes."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_world.errors import AgentWorldError, BadInputError

if TYPE_CHECKING:
    import httpx

    from agent_world.models.cassette import Cassette

_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class EndpointError(AgentWorldError):
    """A model endpoint did not answer, or answered with something that is no chat completion."""

    def __init__(self, url: str, why: str, attempts: int) -> None:
        super().__init__(url, why, attempts)
        self.url, self.why, self.attempts = url, why, attempts

    def __str__(self) -> str:
        return f"{self.url}: {self.why} after {self.attempts} attempts; check the address, the model name and the key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model is served. `base_url` ends before ``/chat/completions``."""

    base_url: str
    model: str
    api_key: str | None = None
    timeout_s: float = 120.0
    attempts: int = 5
    backoff_s: float = 0.5

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url}#{self.model})"

    @classmethod
    def parse(cls, text: str, api_key: str | None = None) -> Endpoint:
        """The endpoint that ``URL#model`` names.

        Raises:
            BadInputError: one of the two is missing.
        """
        base_url, _, model = text.partition("#")
        if not base_url.startswith(("http://", "https://")) or not model:
            cure = "for example http://127.0.0.1:8000/v1#Qwen/Qwen3-8B"
            raise BadInputError(text, "an endpoint is written URL#model", cure)
        return cls(base_url=base_url.rstrip("/"), model=model, api_key=api_key)


@dataclass(slots=True, kw_only=True)
class Usage:
    """What model calls cost so far; replayed calls cost nothing."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    wall_s: float = 0.0


class ChatClient:
    """Sends chat completions to one endpoint; may be used from several threads. Use it with `with`."""

    def __init__(self, endpoint: Endpoint, *, cassette: Cassette | None = None) -> None:
        self.endpoint, self.usage = endpoint, Usage()
        self._cassette, self._lock = cassette, threading.Lock()
        self._http: httpx.Client | None = None

    def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a chat completion request (its ``model`` is filled in).

        Raises:
            EndpointError: no usable response within the endpoint's attempts.
            NotRecordedError: replaying a cassette that does not hold this request.
        """
        body = {"model": self.endpoint.model, **request}
        if self._cassette is not None:
            with self._lock:
                recorded = self._cassette.play(body)
            if recorded is not None:
                return recorded
        started = time.perf_counter()
        response = self._send(body)
        spent = response.get("usage") or {}
        with self._lock:
            self.usage.calls += 1
            self.usage.prompt_tokens += int(spent.get("prompt_tokens") or 0)
            self.usage.completion_tokens += int(spent.get("completion_tokens") or 0)
            self.usage.wall_s += time.perf_counter() - started
            if self._cassette is not None:
                self._cassette.add(body, response)
        return response

    def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            self._http.close()

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, body: Mapping[str, Any]) -> dict[str, Any]:
        import httpx

        url = f"{self.endpoint.base_url}/chat/completions"
        why = "no attempt was made"
        for attempt in range(1, self.endpoint.attempts + 1):
            try:
                reply = self._client().post(url, json=dict(body))
            except httpx.TransportError as error:
                why, wait = f"{type(error).__name__}: {error}", None
            else:
                if reply.status_code == 200:
                    return _completion(url, reply, attempt)
                why, wait = f"HTTP {reply.status_code}: {reply.text[:300]}", reply.headers.get("retry-after")
                if reply.status_code not in _TRY_AGAIN:
                    raise EndpointError(url, why, attempt)
            if attempt < self.endpoint.attempts:
                time.sleep(_wait_s(wait, self.endpoint.backoff_s * 2 ** (attempt - 1)))
        raise EndpointError(url, why, self.endpoint.attempts)

    def _client(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._http is None:
                key = self.endpoint.api_key
                headers = {"authorization": f"Bearer {key}"} if key else {}
                self._http = httpx.Client(headers=headers, timeout=self.endpoint.timeout_s)
            return self._http


def _completion(url: str, reply: httpx.Response, attempt: int) -> dict[str, Any]:
    try:
        response = reply.json()
        response["choices"][0]["message"]["role"]
    except (ValueError, KeyError, IndexError, TypeError):
        raise EndpointError(url, f"the reply is no chat completion: {reply.text[:200]!r}", attempt) from None
    return response


def _wait_s(retry_after: str | None, backoff_s: float) -> float:
    """What the server asked for when it is a number of seconds up to a minute, else the backoff."""
    if retry_after is not None and retry_after.replace(".", "", 1).isdigit():
        return min(float(retry_after), 60.0)
    return backoff_s
