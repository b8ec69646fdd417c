"""The access log: one JSON object a line for each request, with nothing in it that would let a reader in."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TextIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One request and its answer. `path` is the route, not what stands in its variable parts; queries are left out.

    `refused` is the code of the refusal when the request got no further than the door. `session` tells requests of one
    MCP session apart from others' and is not its id, which would do to act in it. Sizes are in bytes.
    """

    client: str
    method: str
    path: str
    status: int
    seconds: float
    received: int
    sent: int
    refused: str | None = None
    session: str | None = None


class AccessLog:
    """Writes to an open text stream, line by line; closing it is up to whoever opened it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream

    def write(self, access: Access) -> None:
        """Add a line. A log that cannot be written any more is given up: it must not end the service."""
        if self._stream is None:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, **{name: value for name, value in asdict(access).items() if value is not None}}
        try:
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None


def mark(secret: str) -> str:
    """What stands for a secret in a log: the same for the same one, and no way back."""
    return hashlib.sha256(secret.encode()).hexdigest()[:8]
