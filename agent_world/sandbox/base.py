"""What every back-end offers: sessions, and code run in a session of its own."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from agent_world.sandbox.errors import SandboxFailedError, SandboxUnavailableError, SessionFault
from agent_world.sandbox.memory import MemoryFile
from agent_world.sandbox.worker import Worker

Json = Any
RunStatus = Literal["ok", "error", "timeout", "crash", "oom", "output_too_big", "protocol_error"]
_MEGABYTE = 1 << 20
_START_TIMEOUT_S = 60.0
_STDOUT_CHARACTERS = 1 << 16
_COMPILED_KEPT = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one session may use at most."""

    memory_bytes: int = 512 * _MEGABYTE
    file_bytes: int = 64 * _MEGABYTE
    work_bytes: int = 64 * _MEGABYTE
    work_files: int = 1024
    open_files: int = 64
    cpu_s: int = 60

    def as_json(self, processes: int) -> str:
        """The limits as the guest takes them."""
        return json.dumps({**asdict(self), "processes": processes})


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


def ask(worker: Worker, request: Mapping[str, Json], timeout_s: float) -> RunResult:
    """What a session that runs code replies to `request`, or how it ended over it.

    Raises:
        SandboxFailedError: the session never came up.
    """
    try:
        reply = worker.request(request, timeout_s)
    except SessionFault as fault:
        return RunResult(status=fault.fault, error=fault.detail)
    stdout = str(reply.get("stdout", ""))[:_STDOUT_CHARACTERS]
    match reply:
        case {"ok": value}:
            return RunResult(status="ok", value=value, stdout=stdout)
        case {"error": [str(name), str(message)]} | {"refused": [str(name), str(message)]}:
            status: RunStatus = "oom" if name == "MemoryError" else "error"
            return RunResult(status=status, error=f"{name}: {message}" if message else name, stdout=stdout)
    return RunResult(status="protocol_error", error="a reply that is neither a result nor an error", stdout=stdout)


class Sandbox(ABC):
    """A supervisor's hold on one back-end. Use it with `with`; leaving ends every session in it.

    A back-end may differ in how it isolates and in what it lets a session start; never in what the same code sees: the
    same guest, the same limits. Each has a process of ours, its host (guest/host.py), that makes and ends sessions.
    """

    backend: ClassVar[str]
    cure: ClassVar[str]
    """What to do when it does not start."""
    processes: ClassVar[int] = 1
    """How many processes and threads a session may have at a time."""
    permits: ClassVar[frozenset[str]] = frozenset()
    """Attacks of the self-test that are none here: what sessions of this back-end are meant to be able to do."""

    def __init__(self, limits: Limits | None = None) -> None:
        """Start the back-end; not yet tested, which `open_sandbox` sees to.

        Raises:
            SandboxUnavailableError: it cannot start here.
        """
        self.limits = limits or Limits()
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        self._compiled: dict[str, RunResult] = {}
        self._control = self._start()
        self._control.settimeout(_START_TIMEOUT_S)
        try:
            hello = self._control.recv(1024)
        except (TimeoutError, ConnectionResetError):
            hello = b""
        if hello != b"ready":
            self._control.close()
            said = [*self._end().split("\n"), hello.decode(errors="replace")]
            why = [line.strip() for line in said if line.strip()] or ["it did not start"]
            raise SandboxUnavailableError(self.backend, why[-1], self.cure)

    @abstractmethod
    def _start(self) -> socket.socket:
        """Start the host; returns the packet socket that it listens to.

        Raises:
            SandboxUnavailableError: it cannot start here.
        """

    @abstractmethod
    def _end(self) -> str:
        """Wait for the host, whose socket is closed, or kill it; returns what it complained of."""

    @classmethod
    @abstractmethod
    def foundation(cls) -> str:
        """What the isolation rests on, versions included: on another foundation it needs another self-test.

        Raises:
            SandboxUnavailableError: a part of it is missing.
        """

    def open(self, descriptors: Sequence[int], setup: Mapping[str, Json]) -> Worker:
        """A new session with copies of these descriptors (guest/worker.py: kinds of setup); made while we go on.

        Raises:
            SandboxFailedError: the back-end is gone.
        """
        ours, theirs = socket.socketpair()
        number = next(self._numbers)
        try:
            socket.send_fds(self._control, [b"open %d" % number], [theirs.fileno(), *descriptors])
        except OSError as error:
            ours.close()
            raise SandboxFailedError(f"its host is gone ({error})") from None
        finally:
            theirs.close()
        return Worker(ours, lambda: self._kill(number), self.alive, setup)

    def _kill(self, number: int) -> None:
        with contextlib.suppress(OSError):
            self._control.send(b"kill %d" % number)

    def alive(self) -> bool:
        """Whether new sessions can be opened."""
        # After its first word a host says nothing more: what can be read now is its end.
        waiting = select.poll()
        try:
            waiting.register(self._control, select.POLLIN)
        except ValueError:  # closed, perhaps just now by another thread
            return False
        return not waiting.poll(0)

    def abandon(self) -> None:
        """Let go of a sandbox that was inherited by fork: it stays its maker's, who alone can end it."""
        self._control.close()

    def close(self) -> None:
        """End all sessions and the back-end's own processes."""
        if self._control.fileno() < 0:
            return
        self._control.close()
        if os.getpid() == self._owner:
            self._end()

    def open_code(self, files: Mapping[str, bytes | str], *, descriptors: Sequence[int] = (), seed: int = 0) -> Worker:
        """A session with `files` in its working folder, for requests ``{"entry", "arguments"}`` as `run_code` makes.

        Raises:
            SandboxFailedError: the back-end is gone.
        """
        index, parts, offset = {}, [], 0
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            index[path] = [offset, len(data)]
            parts.append(data)
            offset += len(data)
        with MemoryFile(b"".join(parts)) as packed:
            return self.open([packed.fd, *descriptors], {"kind": "code", "files": index, "seed": seed})

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
        with self.open_code(files, seed=seed) as worker:
            return ask(worker, {"entry": entry, "arguments": arguments}, timeout_s)

    def compiled(self, source: str, *, timeout_s: float = 10.0) -> RunResult:
        """`source` as a code object of the guest's Python, for sessions that are to run it often: marshal and base64.

        A session that runs none of it compiles it; what came of it is kept for the next who asks.

        Raises:
            SandboxFailedError: as `run_code`.
        """
        kept = self._compiled.get(source)
        if kept is not None:
            return kept
        result = self.run_code({}, "compiling:compiled", {"source": source}, timeout_s=timeout_s)
        if result.status == "ok":
            if len(self._compiled) >= _COMPILED_KEPT:
                self._compiled.clear()
            self._compiled[source] = result
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
