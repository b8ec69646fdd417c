"""What clients may use at most, and the count of what they have open."""

from __future__ import annotations

from dataclasses import dataclass

from agent_world.errors import AgentWorldError


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLimits:
    """For all clients together: `sessions`. For each: the others; `idle_s` counts from its last request.

    `calls` counts the tool calls of one session, `body_bytes` the body of one request.
    """

    sessions: int = 256
    idle_s: float = 30 * 60
    body_bytes: int = 1 << 20
    calls: int = 10_000


class FullError(AgentWorldError):
    """Every place is taken."""

    def __init__(self, places: int) -> None:
        super().__init__(places)
        self.places = places

    def __str__(self) -> str:
        return f"all {self.places} sessions are taken; close one, or try again later"


class Places:
    """Counts open sessions against the most that may be open at once. Lives on one event loop."""

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0

    def take(self) -> Place:
        """Take a place until it is left.

        Raises:
            FullError: there is none.
        """
        if self.taken >= self.most:
            raise FullError(self.most)
        self.taken += 1
        return Place(self)


class Place:
    """One place; leaving it again is harmless."""

    def __init__(self, places: Places) -> None:
        self._places: Places | None = places

    def leave(self) -> None:
        """Give it back."""
        places, self._places = self._places, None
        if places is not None:
            places.taken -= 1
