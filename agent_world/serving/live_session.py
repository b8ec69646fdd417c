"""A client's session in one environment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_world.environments.model import Environment, Json
from agent_world.environments.session import open_session
from agent_world.environments.state import EnvironmentState
from agent_world.rollouts.model import Observation
from agent_world.serving.held import Held
from agent_world.serving.metrics import Metrics

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox


class LiveSession:
    """Opened by the first call, over the snapshot and with `seed`; it has so many `calls`."""

    def __init__(
        self, environment: Environment, *, seed: int, sandbox: Sandbox | None, calls: int, metrics: Metrics
    ) -> None:
        self._environment, self._calls, self._left, self._metrics = environment, calls, calls, metrics
        self._session = Held(lambda: open_session(environment, seed, sandbox))

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Observation:
        """As `Session.call`; refused when the calls are used up."""
        if self._left <= 0:
            return call_limit(self._calls)
        self._left -= 1
        began = time.monotonic()
        seen = await self._session.use(lambda session: session.call(tool, arguments))
        self._metrics.calls.add(self._environment.environment_id, tool, seen.status)
        self._metrics.call_seconds.observe(time.monotonic() - began, self._environment.environment_id)
        return seen

    async def state(self) -> EnvironmentState:
        """The state now.

        Raises:
            CorruptStateError: code in the session broke it.
        """
        return await self._session.use(lambda session: session.state())

    def stop(self) -> None:
        """End what runs in it."""
        self._session.stop()

    async def close(self) -> None:
        """Free everything."""
        await self._session.close()


def call_limit(calls: int) -> Observation:
    """What a client sees that has used up its calls."""
    message = f"A session has {calls} calls, and all of them have been made; open a new one."
    return Observation(status="refused", value={"error": {"code": "call_limit", "message": message}})
