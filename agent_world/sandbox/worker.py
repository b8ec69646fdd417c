"""The supervisor's side of one session: requests out, replies in, every byte of them suspect."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NoReturn, Self

from agent_world.sandbox import strict_json
from agent_world.sandbox.errors import Fault, SandboxFailedError, SessionFault
from agent_world.sandbox.strict_json import StrictJsonError

Json = Any
_RECEIVE_BYTES = 1 << 16
_LINE_BYTES = 4 << 20
_START_TIMEOUT_S = 30.0
_DEATH_TIMEOUT_S = 10.0


class Worker:
    """A live session. After a fault, and after `kill`, it answers nothing any more; `close` frees it in any case."""

    def __init__(
        self,
        channel: socket.socket,
        kill: Callable[[], None],
        host_lives: Callable[[], bool],
        setup: Mapping[str, Json],
    ) -> None:
        self._channel, self._kill, self._host_lives = channel, kill, host_lives
        self._buffer = b""
        self._ready = False
        self._count = 0
        self._ended: SessionFault | SandboxFailedError | None = None
        self._write(json.dumps(setup).encode() + b"\n", time.monotonic() + _START_TIMEOUT_S)

    def request(self, message: Mapping[str, Json], timeout_s: float) -> dict[str, Json]:
        """The reply to `message`.

        Raises:
            SessionFault: the session did not answer as agreed; it is dead now.
            SandboxFailedError: the session never came up, or was lost with the process that made it.
        """
        if self._ended is not None:
            raise type(self._ended)(*self._ended.args)
        self._count += 1
        deadline = time.monotonic() + timeout_s
        self._write(json.dumps({**message, "n": self._count}).encode() + b"\n", deadline)
        if not self._ready:
            self._await_start()
            deadline = time.monotonic() + timeout_s
        reply = self._parse(self._line(deadline))
        # To Python, true is 1 and so is 1.0.
        number = reply.get("n") if isinstance(reply, dict) else None
        if type(number) is not int or number != self._count or self._buffer:
            self._end("protocol_error", "a reply that is not the one to the request")
        return reply

    def kill(self) -> None:
        """End the session now; on return its code can no longer change anything."""
        if self._ended is None:
            self._ended = SessionFault("crash", "the session was ended")
        self._kill()
        self._channel.settimeout(_DEATH_TIMEOUT_S)
        try:
            while self._channel.recv(_RECEIVE_BYTES):
                pass
        except TimeoutError:
            raise SandboxFailedError("a session outlived its kill") from None
        except ConnectionResetError:
            pass

    def close(self) -> None:
        """Free everything; killing again is harmless."""
        if self._channel.fileno() >= 0:
            self._kill()
            self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _await_start(self) -> None:
        try:
            line = self._line(time.monotonic() + _START_TIMEOUT_S)
        except SessionFault as fault:
            raise SandboxFailedError(f"a session did not start ({fault})") from None
        message = self._parse(line)
        if message != {"ready": True}:
            raise SandboxFailedError(f"a session did not start ({message})")
        self._ready = True

    def _write(self, data: bytes, deadline: float) -> None:
        try:
            self._channel.settimeout(max(deadline - time.monotonic(), 0.001))
            self._channel.sendall(data)
        except TimeoutError:
            self._end("timeout", "it does not read its requests")
        except OSError:
            if not self._ready:
                self._await_start()
            self._end("crash", "it ended before the request")

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            if len(self._buffer) > _LINE_BYTES:
                self._end("output_too_big", f"more than {_LINE_BYTES} bytes in one reply")
            self._channel.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._channel.recv(_RECEIVE_BYTES)
            except TimeoutError:
                self._end("timeout", "no reply in time")
            except ConnectionResetError:
                data = b""
            if not data:
                self._end("crash", "it ended without a reply")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _parse(self, line: bytes) -> Json:
        try:
            return strict_json.loads(line)
        except StrictJsonError as error:
            self._end("protocol_error", str(error))

    def _end(self, fault: Fault, detail: str) -> NoReturn:
        self._ended = SessionFault(fault, detail)
        # A host closes its end before its sessions are killed over its own death: theirs is no doing of their code.
        if fault == "crash" and not self._host_lives():
            self._ended = SandboxFailedError(f"its host is gone, and with it a session ({detail})")
        self._kill()
        raise self._ended
