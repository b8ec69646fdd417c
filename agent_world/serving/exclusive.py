"""Something for one user at a time on the server: several requests may want it at once, and it may hang."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from agent_world.errors import AgentWorldError


class Stoppable(Protocol):
    """A session or an episode."""

    def stop(self) -> object:
        """End what runs in it, from another thread."""
        ...

    def close(self) -> object:
        """Free everything."""
        ...


T = TypeVar("T", bound=Stoppable)
R = TypeVar("R")


class ClosedError(AgentWorldError):
    """A request came to what its client does not hold any more."""

    def __str__(self) -> str:
        return "this session has ended; open a new one"


class Exclusive(Generic[T]):
    """Opened by its first use; used in a thread of its own, so that a tool that hangs holds up nobody else."""

    def __init__(self, open: Callable[[], T]) -> None:
        self._open, self._one_at_a_time = open, CapacityLimiter(1)
        self._opened: T | None = None
        self._closed = False

    async def use(self, work: Callable[[T], R]) -> R:
        """What `work` makes of it, when all that was asked for before is done.

        Raises:
            ClosedError: it was closed before its turn.
        """
        return await run_sync(self._use, work, limiter=self._one_at_a_time)

    def stop(self) -> None:
        """End what runs in it now, so that whoever waits for that gets an answer at once; no use of it begins."""
        self._closed = True
        if self._opened is not None:
            # A use in another thread may have freed it meanwhile: it has ended then, which is what was asked.
            with suppress(AgentWorldError, OSError):
                self._opened.stop()

    async def close(self) -> None:
        """Stop, and free everything; closing again is harmless."""
        self._closed = True
        await run_sync(self.stop)  # it waits for the session's end
        await run_sync(self._free, limiter=self._one_at_a_time)

    def _use(self, work: Callable[[T], R]) -> R:
        if self._closed:
            raise ClosedError
        if self._opened is None:
            self._opened = self._open()
            if self._closed:  # stopped meanwhile, when there was nothing to stop
                raise ClosedError
        return work(self._opened)

    def _free(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()
