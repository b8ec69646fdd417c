"""What every back-end offers: sessions, and code run in a session of its own."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Literal, Self

from agent_world.sandbox.errors import SessionFault
from agent_world.sandbox.memory import MemoryFile
from agent_world.sandbox.worker import Worker

Json = Any
RunStatus = Literal["ok", "error", "timeout", "crash", "oom", "output_too_big", "protocol_error"]
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one session may use at most."""

    memory_bytes: int = 512 * _MEGABYTE
    file_bytes: int = 64 * _MEGABYTE
    work_bytes: int = 64 * _MEGABYTE
    work_files: int = 1024
    open_files: int = 64
    cpu_s: int = 60

    def as_json(self) -> str:
        """The limits as the guest takes them."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a piece of code ended.

    ok: `value` is its JSON result. error: it raised, `error` is ``"Type: message"``. The others: it never answered.
    `stdout` is what it printed, cut at 64 KB.
    """

    status: RunStatus
    value: Json = None
    error: str | None = None
    stdout: str = ""


class Sandbox(ABC):
    """A supervisor's hold on one back-end. Use it with `with`; leaving ends every session in it.

    A back-end may differ in how it isolates; never in what a session sees: the same guest, the same limits.
    """

    backend: str
    limits: Limits

    @abstractmethod
    def open(self, descriptors: Sequence[int], setup: Mapping[str, Json]) -> Worker:
        """A new session in namespaces of its own, with copies of these descriptors (guest/worker.py: kinds of setup).

        Raises:
            SandboxFailedError: the back-end is gone.
        """

    @abstractmethod
    def __init__(self, limits: Limits | None = None) -> None:
        """Start the back-end; not yet tested, which `open_sandbox` sees to.

        Raises:
            SandboxUnavailableError: it cannot start here.
        """

    @staticmethod
    @abstractmethod
    def programs() -> Sequence[str]:
        """The programs that the isolation rests on, by path: another version needs another self-test.

        Raises:
            SandboxUnavailableError: one is missing.
        """

    @abstractmethod
    def alive(self) -> bool:
        """Whether new sessions can be opened."""

    @abstractmethod
    def abandon(self) -> None:
        """Let go of a sandbox that was inherited by fork: it stays its maker's, who alone can end it."""

    @abstractmethod
    def close(self) -> None:
        """End all sessions and the back-end's own processes."""

    def run_code(
        self,
        files: Mapping[str, bytes | str],
        entry: str,
        arguments: Json = None,
        *,
        timeout_s: float = 10.0,
        seed: int = 0,
    ) -> RunResult:
        """Lay `files` in the working folder of a fresh session and call `entry` (``module:function``) there.

        A dict of arguments is passed as keywords, None as nothing, anything else as the one argument.

        Raises:
            SandboxFailedError: the sandbox failed, or has no room for the files.
        """
        index, parts, offset = {}, [], 0
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            index[path] = [offset, len(data)]
            parts.append(data)
            offset += len(data)
        setup = {"kind": "code", "files": index, "seed": seed}
        with MemoryFile(b"".join(parts)) as packed, self.open([packed.fd], setup) as worker:
            try:
                reply = worker.request({"entry": entry, "arguments": arguments}, timeout_s)
            except SessionFault as fault:
                return RunResult(status=fault.fault, error=fault.detail)
        stdout = str(reply.get("stdout", ""))
        if "ok" in reply:
            return RunResult(status="ok", value=reply["ok"], stdout=stdout)
        name, message = (reply.get("error") or reply.get("refused") or ["ProtocolError", "no result"])[:2]
        status: RunStatus = "oom" if name == "MemoryError" else "error"
        return RunResult(status=status, error=f"{name}: {message}" if message else str(name), stdout=stdout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
