"""Sends lineage elsewhere: OpenLineage events to a file or to a server, PROV-JSON to a file."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

from agent_world.errors import BadInputError
from agent_world.lake.errors import LakeError
from agent_world.lake.lineage import upstream
from agent_world.lake.view import View

ENDPOINT = "/api/v1/lineage"
"""Where an OpenLineage server takes events, unless the address has a path of its own."""

_TIMEOUT_S = 30.0
_ATTEMPTS = 4
_PAUSE_S = 0.1
_ALL = 1 << 62


class NotTakenError(LakeError):
    """The server at `url` did not take the event `number` (from 1); those before it are there."""

    def __init__(self, url: str, number: int, why: str) -> None:
        super().__init__(url, number, why)
        self.url, self.number, self.why = url, number, why

    def __str__(self) -> str:
        return f"{self.url} did not take event {self.number}: {self.why}; correct it there and export again"


def made_from(view: View, version_ids: Iterable[str]) -> set[str]:
    """These versions and everything that they were made from.

    Raises:
        NotFoundError: no such version.
    """
    asked = list(version_ids)
    return {*asked, *(hop.version_id for version in asked for hop in upstream(view, version, limit=_ALL).hops)}


def write_events(events: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Write events to a file, one a line, all of them or none; gives how many there were."""
    count = 0
    with _replacing(path) as file:
        for event in events:
            file.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")
            count += 1
    return count


def write_text(pieces: Iterable[str], path: Path) -> None:
    """Write pieces of text to a file, all of them or none."""
    with _replacing(path) as file:
        file.writelines(pieces)


def post_events(events: Iterable[Mapping[str, Any]], url: str, api_key: str | None = None) -> int:
    """Send events to a server, one a request, in order; gives how many it took.

    A server that is busy or cannot be reached is asked again a few times. Sending twice does no harm: runs and versions
    have ids of their own.

    Raises:
        BadInputError: `url` is no address of a server.
        NotTakenError: the server refused an event, or could not be reached.
    """
    import httpx

    address = _address(url)
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    taken = 0
    with httpx.Client(timeout=_TIMEOUT_S, headers=headers) as client:
        for event in events:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    answer = client.post(address, json=event)
                    status, why = answer.status_code, answer.text
                except httpx.TransportError as error:
                    status, why = 0, type(error).__name__
                if 200 <= status < 300:
                    break
                if (status and status < 500 and status != 429) or attempt == _ATTEMPTS:
                    raise NotTakenError(
                        _shown(address), taken + 1, f"{status or ''} {' '.join(why.split())[:200]}".strip()
                    )
                time.sleep(_PAUSE_S * 2**attempt)
            taken += 1
    return taken


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInputError(url, "it is no address of a server", "give http:// or https:// and a host, or a file name")
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") or ENDPOINT))


def _shown(address: str) -> str:
    """The address without what may be secret in it."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@contextmanager
def _replacing(path: Path) -> Iterator[IO[str]]:
    """A file that takes the place of `path` when it is whole."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with part.open("w", encoding="utf-8") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise BadInputError(str(path), error.strerror or str(error), "name a file that can be written") from error
    finally:
        part.unlink(missing_ok=True)
