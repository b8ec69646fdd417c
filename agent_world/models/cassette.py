"""Recorded model calls: replayed by the hash of the request, so that tests need no model (design.md 6)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from agent_world.errors import AgentWorldError
from agent_world.identity import Digest, canonical_json, sha256

Mode = Literal["replay", "record"]


class NotRecordedError(AgentWorldError):
    """A request that the cassette does not hold."""

    def __init__(self, cassette: str, request: Digest) -> None:
        super().__init__(cassette, request)
        self.cassette, self.request = cassette, request

    def __str__(self) -> str:
        return f"the cassette {self.cassette} holds no answer to request {self.request[:16]}; record it again"


class Cassette:
    """A JSONL file, one line a request: its hash, the request, the responses it got, in order.

    Equal requests get their responses one after the other, then the last one again. `replay` never calls; `record`
    appends what it does not hold.
    """

    def __init__(self, path: Path, mode: Mode = "replay") -> None:
        self.path, self.mode = path, mode
        self._responses: dict[Digest, list[Any]] = {}
        self._played: dict[Digest, int] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                entry = json.loads(line)
                self._responses.setdefault(entry["hash"], []).append(entry["response"])

    def play(self, request: Mapping[str, Any]) -> Any | None:
        """The next response to `request`; None when there is none and this cassette records.

        Raises:
            NotRecordedError: there is none and this cassette only replays.
        """
        key = request_hash(request)
        recorded = self._responses.get(key, [])
        position = self._played.get(key, 0)
        if not recorded or (self.mode == "record" and position >= len(recorded)):
            if self.mode == "replay":
                raise NotRecordedError(str(self.path), key)
            return None
        self._played[key] = position + 1
        return recorded[min(position, len(recorded) - 1)]

    def add(self, request: Mapping[str, Any], response: Any) -> None:
        """Append a response that came from the model."""
        key = request_hash(request)
        self._responses.setdefault(key, []).append(response)
        self._played[key] = len(self._responses[key])
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as tape:
            tape.write(canonical_json({"hash": key, "request": request, "response": response}) + "\n")


def request_hash(request: Mapping[str, Any]) -> Digest:
    """What a request is, whatever the endpoint's address and credentials."""
    return sha256(canonical_json(request))
