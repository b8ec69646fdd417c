"""One session and one memory for many guessing episodes, as long as they change nothing.

A random agent's calls are mostly look-ups and refused writes, the same ones in many runs. Reading tools leave the
state alone (the sandbox holds them to that), a refused write is rolled back: so until an episode's first write is
carried out, what a call gives follows from the call alone, and a session is as good as new. This is used for nothing
but guessing: what is recorded, trained on or audited gets a session of its own, so an audit shows whether sharing made
a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_world.environments.formats import initial_state
from agent_world.environments.model import Environment, Json
from agent_world.environments.session import Session, open_session
from agent_world.environments.state import EnvironmentState
from agent_world.identity import canonical_json
from agent_world.rollouts.cutting import shown
from agent_world.rollouts.model import Observation

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox


class SharedSessions:
    """Opens leases over one environment with one seed; use it with `with`. Episodes must run one after the other."""

    def __init__(self) -> None:
        self.known: dict[str, Observation] = {}
        self.opened = 0
        self._initial: EnvironmentState | None = None
        self._idle: Session | None = None

    def __call__(self, environment: Environment, seed: int, sandbox: Sandbox | None = None) -> Lease:
        """A lease for the next episode."""
        if self._initial is None:
            self._initial = initial_state(environment)
        return Lease(self, self._initial, environment, seed, sandbox)

    def take(self, environment: Environment, seed: int, sandbox: Sandbox | None) -> Session:
        """The untouched session when there is one, else a new one."""
        session, self._idle = self._idle, None
        if session is None:
            session = open_session(environment, seed, sandbox)
            self.opened += 1
        return session

    def give_back(self, session: Session) -> None:
        """Take back a session that is still as it was opened."""
        self._idle = session

    def __enter__(self) -> SharedSessions:
        return self

    def __exit__(self, *_: object) -> None:
        if self._idle is not None:
            self._idle.close()


class Lease:
    """What an episode needs of a session; it holds a real one once a call comes that was never made before."""

    def __init__(
        self,
        owner: SharedSessions,
        initial: EnvironmentState,
        environment: Environment,
        seed: int,
        sandbox: Sandbox | None,
    ) -> None:
        self._owner, self._initial = owner, initial
        self._environment, self._seed, self._sandbox = environment, seed, sandbox
        self._writing = {tool.name for tool in environment.tools if tool.writes}
        self._session: Session | None = None
        self._untouched = True

    def call(self, name: str, arguments: Mapping[str, Json]) -> Observation:
        """Call one tool. A write that is carried out, or a fault, makes the session this episode's own."""
        key = canonical_json([name, arguments])
        if self._untouched and key in self._owner.known:
            return self._owner.known[key]
        if self._session is None:
            self._session = self._owner.take(self._environment, self._seed, self._sandbox)
        observation = self._session.call(name, arguments)
        if observation.status == "error" or (observation.status == "ok" and name in self._writing):
            self._untouched = False
        elif self._untouched and shown(observation.value) is observation.value:
            self._owner.known[key] = observation  # what is long is asked for again, not kept for many runs
        return observation

    def stop(self) -> None:
        """End the session's code, unless it will serve others."""
        if self._session is not None and not self._untouched:
            self._session.stop()

    def state(self) -> EnvironmentState:
        """The state now."""
        return self._initial if self._session is None or self._untouched else self._session.state()

    def close(self) -> None:
        """Hand the session back, or free it."""
        session, self._session = self._session, None
        if session is not None and self._untouched:
            self._owner.give_back(session)
        elif session is not None:
            session.close()
