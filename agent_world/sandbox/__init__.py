"""Runs foreign code where it can hurt nobody: one protocol, back-ends, and the attacks they must withstand."""

from __future__ import annotations

import atexit
import os
import threading

from agent_world.sandbox.base import Limits, RunResult, Sandbox
from agent_world.sandbox.bwrap import BwrapSandbox
from agent_world.sandbox.errors import SandboxFailedError, SandboxUnavailableError, SessionFault
from agent_world.sandbox.worker import Worker

__all__ = [
    "Limits",
    "RunResult",
    "Sandbox",
    "SandboxFailedError",
    "SandboxUnavailableError",
    "SessionFault",
    "Worker",
    "default_sandbox",
    "open_sandbox",
]

_BACKENDS = {"bwrap": BwrapSandbox}
_default: BwrapSandbox | None = None
_lock = threading.Lock()


def open_sandbox(backend: str = "bwrap", limits: Limits | None = None) -> Sandbox:
    """A new sandbox of this back-end; the caller closes it.

    Raises:
        SandboxUnavailableError: there is no such back-end, or it cannot start here.
    """
    if backend not in _BACKENDS:
        raise SandboxUnavailableError(backend, "there is no such back-end", f"use one of {', '.join(_BACKENDS)}")
    return _BACKENDS[backend](limits)


def default_sandbox() -> Sandbox:
    """The sandbox of this process: started at the first call, ended with the process, started again if it died.

    A forked child gets its own.
    """
    global _default
    with _lock:
        if _default is None or not _default.alive():
            if _default is not None:
                _default.close()
            _default = BwrapSandbox()
        return _default


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
