"""What an event of an older version says in the words of today.

The events are never rewritten. Whoever folds them lifts the payload of each from the version it was written in, one
version at a time. To change what an event says: add the lift from the version that was the newest to `LIFTS`, and give
a new column of `events` the next version as its `since`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Payload = Mapping[str, Any]
Lift = Callable[[str, str | None, Payload], Payload]
"""From the type of an event, its kind (artifact or fact table) and its payload to the payload one version on."""


def _second(event_type: str, kind: str | None, payload: Payload) -> Payload:
    """Version 2 knows events of the type `reinstated`; what older ones say stays."""
    return payload


LIFTS: list[Lift] = [_second]
"""The first lifts from version 1 to 2, and so on."""

FIRST = 1


def newest() -> int:
    """The version in which events are written now."""
    return FIRST + len(LIFTS)


def lifted(version: int, event_type: str, kind: str | None, payload: Payload) -> Payload:
    """The payload of an event of `version` as it would be written now."""
    for lift in LIFTS[version - FIRST :]:
        payload = lift(event_type, kind, payload)
    return payload
