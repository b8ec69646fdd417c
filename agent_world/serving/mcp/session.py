"""A client's session in one environment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import mcp_types as types
from mcp.shared.exceptions import MCPError

from agent_world.environments.model import Environment, Json
from agent_world.environments.session import open_session
from agent_world.environments.state import EnvironmentState
from agent_world.rollouts.model import Observation
from agent_world.serving.exclusive import Exclusive
from agent_world.serving.limits import CallBudget, call_limit
from agent_world.serving.metrics import Metrics

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox


class EnvironmentSession:
    """Opened by its first use, over the snapshot and with `seed`; calls and reads of its state spend `budget`."""

    def __init__(
        self, environment: Environment, *, seed: int, sandbox: Sandbox | None, budget: CallBudget, metrics: Metrics
    ) -> None:
        self._environment, self._budget, self._metrics = environment, budget, metrics
        self._session = Exclusive(lambda: open_session(environment, seed, sandbox))

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Observation:
        """As `Session.call`; refused when the calls are used up."""
        if not self._budget.spend():
            return call_limit(self._budget)
        began = time.monotonic()
        seen = await self._session.use(lambda session: session.call(tool, arguments))
        self._metrics.calls.add(self._environment.environment_id, tool, seen.status)
        self._metrics.call_seconds.observe(time.monotonic() - began, self._environment.environment_id)
        return seen

    async def state(self) -> EnvironmentState:
        """The state now.

        Raises:
            MCPError: the calls are used up.
            CorruptStateError: code in the session broke it.
        """
        if not self._budget.spend():
            raise MCPError(types.INVALID_REQUEST, self._budget.spent, {"code": "call_limit"})
        return await self._session.use(lambda session: session.state())

    def stop(self) -> None:
        """End what runs in it."""
        self._session.stop()

    async def close(self) -> None:
        """Free everything."""
        await self._session.close()
