"""Which sessions nobody uses any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import anyio


class LastUse:
    """When something was last used; as long as it is in use it is not idle. `clock` gives seconds that only grow."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._at, self._users = clock, clock(), 0

    @contextmanager
    def now(self) -> Iterator[None]:
        """Use it meanwhile."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._at = self._clock()

    def idle(self, seconds: float) -> bool:
        """Whether nobody has used it for so long."""
        return self._users == 0 and self._clock() - self._at >= seconds


async def sweep_for_ever(sweep: Callable[[], Awaitable[None]], idle_s: float) -> None:
    """Call `sweep` often enough to end what is idle for `idle_s` seconds in good time."""
    while True:
        await anyio.sleep(min(max(idle_s / 4, 0.05), 30))
        await sweep()
