"""What clients may use at most, and the count of what they have open."""

from __future__ import annotations

from dataclasses import dataclass

from agent_world.rollouts.model import Observation
from agent_world.serving.refusals import RefusedError

_RETRY_AFTER_S = 1
_CONNECTIONS_A_SESSION = 4
_MORE_CONNECTIONS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLimits:
    """The same for MCP clients and for trainers. A session is that of an MCP client, or an episode of a trainer.

    So many `sessions` are open at once, both kinds together; one that nobody asks for `idle_s` seconds is ended. Each
    has so many `calls`: of tools, replies to the user and reads of documents; the answer is free. A request has at most
    `body_bytes` bytes, which must be there within `body_s` seconds. Of the steps of a trainer's episode, which may be
    asked for again, the latest are kept: `kept_bytes` bytes of them, and at least one.
    """

    sessions: int = 256
    idle_s: float = 30 * 60
    calls: int = 10_000
    body_bytes: int = 1 << 20
    body_s: float = 30
    kept_bytes: int = 4 << 20

    @property
    def connections(self) -> int:
        """Connections open at once: an MCP client has one to listen and some to ask, others are for whoever comes."""
        return _CONNECTIONS_A_SESSION * self.sessions + _MORE_CONNECTIONS


class Places:
    """Counts open sessions against the most that may be open at once. Lives on one event loop."""

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0

    def take(self, number: int = 1) -> list[Place]:
        """Take so many places, each until it is left.

        Raises:
            RefusedError: there are not as many.
        """
        free = self.most - self.taken
        if number > free:
            message = f"Of {self.most} sessions {free} are free, not {number}; end some, or try again later."
            raise RefusedError(503, "server_full", message, {"Retry-After": str(_RETRY_AFTER_S)})
        self.taken += number
        return [Place(self) for _ in range(number)]


class Place:
    """One place; leaving it again is harmless."""

    def __init__(self, places: Places) -> None:
        self._places: Places | None = places

    def leave(self) -> None:
        """Give it back."""
        places, self._places = self._places, None
        if places is not None:
            places.taken -= 1


class CallBudget:
    """The calls that are left to one session."""

    def __init__(self, most: int) -> None:
        self._most, self._left = most, most

    def spend(self) -> bool:
        """Use up one; False when there is none."""
        if self._left <= 0:
            return False
        self._left -= 1
        return True

    @property
    def spent(self) -> str:
        """The sentence for a client that has none left."""
        return f"A session has {self._most} calls, and all of them have been made."


def call_limit(budget: CallBudget) -> Observation:
    """What a client sees that has used up its calls."""
    return Observation(status="refused", value={"error": {"code": "call_limit", "message": budget.spent}})
