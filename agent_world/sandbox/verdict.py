"""Lets a back-end pass or refuses it; a verdict is kept per host and version of everything that it depends on."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
from importlib import resources
from pathlib import Path
from typing import Any

from agent_world.sandbox import attacks, misconduct
from agent_world.sandbox.attacks import ProbeResult
from agent_world.sandbox.base import Sandbox
from agent_world.sandbox.errors import SandboxUnavailableError


def selftest(sandbox: Sandbox) -> list[ProbeResult]:
    """Try every attack on this sandbox."""
    return [*attacks.try_all(sandbox), *misconduct.try_all(sandbox)]


def require(backend: type[Sandbox], cache: Path | None = None) -> None:
    """Let a back-end pass or refuse it, by the kept verdict or by a self-test now.

    Raises:
        SandboxUnavailableError: an attack worked, or the back-end cannot start.
    """
    path = (cache or Path.home() / ".cache" / "agent-world") / f"sandbox-{_fingerprint(backend)}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+") as file:
            # Whoever comes second waits for the first one's verdict.
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            kept = file.read()
            escaped = json.loads(kept) if kept else _escaped(backend)
            if not kept:
                json.dump(escaped, file)
    except OSError:
        escaped = _escaped(backend)
    if escaped:
        raise SandboxUnavailableError(
            backend.backend,
            f"it does not hold {', '.join(escaped)}",
            "see `agent-world sandbox selftest` and use another machine or back-end",
        )


def _escaped(backend: type[Sandbox]) -> list[str]:
    with backend() as sandbox:
        return [result.name for result in selftest(sandbox) if result.contained is False]


def _fingerprint(backend: type[Sandbox]) -> str:
    """What a verdict depends on: the host and its kernel, the back-end's foundation, our code, the user's rights."""
    digest = hashlib.sha256()
    host = Path("/etc/machine-id")
    digest.update(host.read_bytes() if host.exists() else socket.gethostname().encode())
    digest.update(repr((tuple(os.uname()), os.geteuid() == 0, backend.backend, backend.foundation())).encode())
    for file in _own_code():
        digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


def _own_code() -> list[Any]:
    package = resources.files("agent_world.sandbox")
    files = [*package.iterdir(), *(package / "guest").iterdir(), *(package / "probes").iterdir()]
    return sorted((file for file in files if file.name.endswith(".py")), key=lambda file: (file.name, str(file)))
