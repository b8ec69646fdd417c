"""One session for many guessing episodes, as long as none of them changed anything.

A random agent's calls are mostly look-ups and refused writes, and opening a session costs more than all of them. A
session in which every call left the state alone (reading tools are held to that by the sandbox, a refused write is
rolled back) is as good as a new one for the next agent that guesses. It is used for nothing else: what is recorded,
trained on or audited gets a session of its own, so an audit shows whether sharing made a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_world.environments.model import Environment, Json
from agent_world.environments.session import Session, open_session
from agent_world.environments.state import State
from agent_world.rollouts.model import Observation

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox


class SharedSessions:
    """Opens sessions of one environment and seed; use it with `with`. Episodes must run one after the other."""

    def __init__(self) -> None:
        self._idle: Session | None = None
        self.opened = 0

    def __call__(self, environment: Environment, seed: int, sandbox: Sandbox | None = None) -> Lease:
        """The idle session when there is one, else a new one."""
        session, self._idle = self._idle, None
        if session is None:
            session = open_session(environment, seed, sandbox)
            self.opened += 1
        return Lease(session, self)

    def give_back(self, session: Session) -> None:
        """Take a session that is still as it was opened."""
        self._idle = session

    def __enter__(self) -> SharedSessions:
        return self

    def __exit__(self, *_: object) -> None:
        if self._idle is not None:
            self._idle.close()


class Lease:
    """A session for one episode, with what an episode needs of it."""

    def __init__(self, session: Session, owner: SharedSessions) -> None:
        self._session, self._owner = session, owner
        self._writing = {tool.name for tool in session.tools if tool.writes}
        self._untouched = True

    def call(self, name: str, arguments: Mapping[str, Json]) -> Observation:
        """Call one tool; a write that was carried out, or a fault, makes this session the episode's own."""
        observation = self._session.call(name, arguments)
        if observation.status == "error" or (observation.status == "ok" and name in self._writing):
            self._untouched = False
        return observation

    def stop(self) -> None:
        """End the session's code, unless it will serve others."""
        if not self._untouched:
            self._session.stop()

    def state(self) -> State:
        """The state now."""
        return self._session.state()

    def close(self) -> None:
        """Hand the session back, or free it."""
        if self._untouched:
            self._owner.give_back(self._session)
        else:
            self._session.close()
