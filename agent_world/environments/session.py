"""A live episode's environment: a private copy of `D`, fresh tool state, a virtual clock and seeded ids."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from agent_world.environments import state as states
from agent_world.environments.arguments import complaint
from agent_world.environments.errors import CorruptStateError
from agent_world.environments.formats import format_of
from agent_world.environments.model import Environment, Json, PublicTool
from agent_world.environments.state import EnvironmentState, StateDiff
from agent_world.identity import Digest
from agent_world.rollouts.model import Observation
from agent_world.sandbox import Sandbox, SessionFault, default_sandbox
from agent_world.sandbox.memory import MemoryFile

CALL_TIMEOUT_S = 10.0


def open_session(environment: Environment, seed: int, sandbox: Sandbox | None = None) -> Session:
    """A new session over the environment's snapshot. Same environment, seed and calls: same observations and state.

    Raises:
        UnusableEnvironmentError: nothing here opens its runtime over its state format.
        CorruptStateError: its snapshot cannot be laid.
        SandboxFailedError: the sandbox is gone.
    """
    return Session(environment, seed, sandbox or default_sandbox())


class Session:
    """Use it with `with`; leaving frees it. State can be read until then, whatever became of the code in it."""

    def __init__(self, environment: Environment, seed: int, sandbox: Sandbox) -> None:
        self.environment = environment
        self.tools: tuple[PublicTool, ...] = tuple(tool.public() for tool in environment.tools)
        self._by_name = {tool.name: tool for tool in environment.tools}
        self._format = format_of(environment)
        self._snapshot = self._format.snapshot(environment.files)
        self._limit = sandbox.limits.file_bytes
        self._logs = [MemoryFile() for _ in range(self._format.logs)]
        self._loaded: set[str] = set()
        self._worker = sandbox.open(
            self._format.descriptors(self._snapshot, [log.fd for log in self._logs]),
            self._format.setup(self._snapshot, seed),
        )

    def call(self, name: str, arguments: Mapping[str, Json]) -> Observation:
        """Call one tool.

        ok: its result. refused: a business rule said no. invalid: no such tool, or arguments that its schema forbids.
        error: it raised, hung or died; a session that died answers every later call with that error.

        Raises:
            SandboxFailedError: the harness failed, not the tool.
        """
        tool = self._by_name.get(name)
        if tool is None:
            return _failed("invalid", "unknown_tool", f"There is no tool called {name}.")
        if (problem := complaint(tool.input_schema, arguments)) is not None:
            return _failed("invalid", "invalid_arguments", problem)
        request: dict[str, Any] = {"tool": name, "arguments": arguments, "writes": tool.writes}
        if name not in self._loaded:
            request["source"] = tool.source
        try:
            reply = self._worker.request(request, CALL_TIMEOUT_S)
        except SessionFault as fault:
            return _failed("error", fault.fault, f"The tool did not answer: {fault.detail}.")
        if "ok" in reply or "refused" in reply:
            self._loaded.add(name)  # an error may be one of loading it
        if "ok" in reply:
            return Observation(status="ok", value=reply["ok"])
        if "refused" in reply:
            return _failed("refused", *_two_texts(reply["refused"]))
        return _failed("error", *_two_texts(reply.get("error")))

    def state(self) -> EnvironmentState:
        """The state now, read from the session's logs, not asked of it.

        Raises:
            CorruptStateError: its code broke it.
        """
        try:
            logs = [log.read(self._limit) for log in self._logs]
        except ValueError as error:
            raise CorruptStateError(str(error)) from None
        return self._format.read(self._snapshot, logs)

    def digest(self) -> Digest:
        """The logical digest of the state now."""
        return self.state().digest

    def diff(self) -> StateDiff:
        """What the session changed so far."""
        return states.diff(self.initial(), self.state(), self.environment.database.tables)

    def initial(self) -> EnvironmentState:
        """The state that the session started from."""
        return self._format.initial(self.environment.files)

    def stop(self) -> None:
        """End the code of the session: from now on its state cannot change, and every call is an error."""
        self._worker.kill()

    def close(self) -> None:
        """Free everything."""
        self._worker.close()
        for log in self._logs:
            log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _failed(status: Any, code: str, message: str) -> Observation:
    return Observation(status=status, value={"error": {"code": code, "message": message}})


def _two_texts(value: Json) -> tuple[str, str]:
    first, second = value if isinstance(value, list) and len(value) == 2 else ("protocol_error", "")
    return str(first), str(second)
