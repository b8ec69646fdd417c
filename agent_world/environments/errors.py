"""What can be wrong with an environment or with the state that a session left behind."""

from __future__ import annotations

from agent_world.errors import AgentWorldError


class UnusableEnvironmentError(AgentWorldError):
    """An environment that this runtime cannot open."""

    def __init__(self, environment: str, why: str) -> None:
        super().__init__(environment, why)
        self.environment, self.why = environment, why

    def __str__(self) -> str:
        return f"environment {self.environment} cannot be opened: {self.why}; build it again or choose another"


class CorruptStateError(AgentWorldError):
    """The state of a session is no readable state: its own code broke it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"the state is corrupt: {self.what}; find the tool that broke it and reset the session"
