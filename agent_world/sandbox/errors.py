"""What can go wrong between the supervisor and a sandbox."""

from __future__ import annotations

from typing import Literal

from agent_world.errors import AgentWorldError

Fault = Literal["timeout", "crash", "oom", "output_too_big", "protocol_error"]
"""How a session ended that did not answer: its own doing, never the harness's."""


class SandboxUnavailableError(AgentWorldError):
    """The back-end cannot start here, or did not pass its self-test."""

    def __init__(self, backend: str, why: str, cure: str) -> None:
        super().__init__(backend, why, cure)
        self.backend, self.why, self.cure = backend, why, cure

    def __str__(self) -> str:
        return f"the sandbox back-end {self.backend} cannot be used: {self.why}; {self.cure}"


class SandboxFailedError(AgentWorldError):
    """The sandbox itself failed (not the code in it): an episode that meets this is an `infra_error`."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"the sandbox failed: {self.what}; open a new one and repeat the session"


class SessionFault(Exception):
    """The code in a session broke it: it hung, died, or wrote what is not the protocol."""

    fault: Fault

    def __init__(self, fault: Fault, detail: str) -> None:
        super().__init__(fault, detail)
        self.fault, self.detail = fault, detail

    def __str__(self) -> str:
        return f"{self.fault}: {self.detail}"
