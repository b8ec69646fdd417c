"""What is dear to make of an environment, kept for the last few environments that were asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from agent_world.environments.model import Environment

T = TypeVar("T")


class Recent(Generic[T]):
    """A value an environment, by the identity of the environment object, for the last `kept` of them."""

    def __init__(self, kept: int = 4) -> None:
        self._entries: deque[tuple[Environment, T]] = deque(maxlen=kept)

    def get(self, environment: Environment, make: Callable[[], T]) -> T:
        """The value of `environment`, made when it is not kept."""
        for known, value in tuple(self._entries):
            if known is environment:
                return value
        value = make()
        self._entries.append((environment, value))
        return value
