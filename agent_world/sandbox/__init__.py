"""Runs foreign code where it can hurt nobody: one protocol, back-ends, and the attacks they must withstand."""

from __future__ import annotations

import atexit
import os
import threading

from agent_world.sandbox import verdict
from agent_world.sandbox.attacks import ProbeResult
from agent_world.sandbox.base import Limits, RunResult, Sandbox, ask
from agent_world.sandbox.bwrap import BwrapSandbox
from agent_world.sandbox.container import DockerSandbox, RunscSandbox
from agent_world.sandbox.errors import SandboxFailedError, SandboxUnavailableError, SessionFault
from agent_world.sandbox.process import BwrapProcessSandbox
from agent_world.sandbox.worker import Worker

__all__ = [
    "BACKENDS",
    "BACKEND_VARIABLE",
    "DEFAULT_BACKEND",
    "Limits",
    "ProbeResult",
    "RunResult",
    "Sandbox",
    "SandboxFailedError",
    "SandboxUnavailableError",
    "SessionFault",
    "Worker",
    "ask",
    "default_sandbox",
    "open_sandbox",
    "selftest",
]

BACKENDS: dict[str, type[Sandbox]] = {
    kind.backend: kind for kind in (BwrapSandbox, BwrapProcessSandbox, DockerSandbox, RunscSandbox)
}
BACKEND_VARIABLE = "AGENT_WORLD_SANDBOX"
"""The environment variable that names the back-end to use where none is asked for; workers inherit it."""
DEFAULT_BACKEND = "bwrap"
_default: Sandbox | None = None
_lock = threading.Lock()


def open_sandbox(backend: str | None = None, limits: Limits | None = None) -> Sandbox:
    """A new sandbox of this back-end, which has passed its self-test on this host; the caller closes it.

    Without a name it is the one that AGENT_WORLD_SANDBOX names, else `bwrap`.

    Raises:
        SandboxUnavailableError: there is no such back-end, it cannot start here, or an attack works on it.
    """
    kind = _backend(backend)
    verdict.require(kind)
    return kind(limits)


def default_sandbox() -> Sandbox:
    """The sandbox of this process: started at the first call, ended with the process, started again if it died.

    A forked child gets its own.

    Raises:
        SandboxUnavailableError: as `open_sandbox`.
    """
    global _default
    with _lock:
        if _default is None or not _default.alive():
            if _default is not None:
                _default.close()
            _default = open_sandbox()
        return _default


def selftest(backend: str | None = None) -> list[ProbeResult]:
    """Try every attack on this back-end now, whatever the kept verdict.

    Raises:
        SandboxUnavailableError: there is no such back-end, or it cannot start here.
    """
    with _backend(backend)() as sandbox:
        return verdict.selftest(sandbox)


def _backend(name: str | None) -> type[Sandbox]:
    name = name or os.environ.get(BACKEND_VARIABLE) or DEFAULT_BACKEND
    if name not in BACKENDS:
        raise SandboxUnavailableError(name, "there is no such back-end", f"use one of {', '.join(BACKENDS)}")
    return BACKENDS[name]


def _close_default() -> None:
    if _default is not None:
        _default.close()


def _forget_default() -> None:
    global _default, _lock
    _lock = threading.Lock()
    if _default is not None:
        _default.abandon()
        _default = None


atexit.register(_close_default)
os.register_at_fork(after_in_child=_forget_default)
