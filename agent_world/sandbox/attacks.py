"""Attacks a back-end and says what it held.

Every attack runs twice: in a session, and as a control in a plain process, which shows that it works where nothing
stops it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from agent_world.sandbox.base import Sandbox
from agent_world.sandbox.guest_code import PYTHON

_MODULES = ("files", "kernel", "network", "processes", "resources")
_MESSAGES = "messages"
_ATTACK = re.compile(r"^def ([a-z]\w*)\(facts\)", re.MULTILINE)
_CONTROL_TIMEOUT_S = 120.0
_PROBE_TIMEOUT_S = 20.0
_AT_ONCE = 3


class Attack(NamedTuple):
    """A function of one of the modules of `agent_world.sandbox.probes`."""

    module: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """One attack: whether the sandbox held it, whether it works outside of it, and what it met inside.

    `contained` is None for what the back-end permits by design, and which is therefore no attack on it.
    """

    name: str
    contained: bool | None
    control: bool
    detail: str


def try_all(sandbox: Sandbox) -> list[ProbeResult]:
    """Try every attack that is a program, each in a session of its own, and those that need two of them."""
    attacks = [Attack(module, name) for module in _MODULES for name in _ATTACK.findall(_source(module))]
    with _facts() as facts, ThreadPoolExecutor(_AT_ONCE) as pool:
        controls = pool.submit(_outside, attacks, facts)
        insides = pool.map(lambda attack: _inside(sandbox, attack, facts), attacks)
        results = [
            _result(sandbox, attack.name, inside, control)
            for attack, inside, control in zip(attacks, insides, controls.result(), strict=True)
        ]
        return [*results, *_messages(sandbox, facts)]


def _result(sandbox: Sandbox, name: str, inside: dict[str, Any], control: bool) -> ProbeResult:
    if name in sandbox.permits:
        return ProbeResult(name=name, contained=None, control=control, detail="permitted by design")
    return ProbeResult(name=name, contained=not inside["worked"], control=control, detail=str(inside["detail"]))


@contextlib.contextmanager
def _facts() -> Iterator[dict[str, Any]]:
    """Plant what the attacks are after: a secret in a file, listeners, a victim."""
    secret = secrets.token_hex(16)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agent-world-probe-")))
        # Readable for everybody: what keeps a session out must be the sandbox, not file modes.
        folder.chmod(0o755)
        opened = folder / "open"
        opened.mkdir()
        opened.chmod(0o777)
        (folder / "secret").write_text(secret)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract, named = f"agent-world-{secret}", str(folder / "named")
        for address in (f"\0{abstract}", named):
            local = stack.enter_context(socket.socket(socket.AF_UNIX))
            local.bind(address)
            local.listen()
        os.chmod(named, 0o777)
        victim = subprocess.Popen(["/bin/sleep", "600"])
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        yield {
            "secret": secret,
            "secret_file": str(folder / "secret"),
            "open_folder": str(opened),
            "port": listener.getsockname()[1],
            "abstract": abstract,
            "named": named,
            "victim": victim.pid,
            "host": socket.gethostname(),
            "message": f"message-{secret}",
        }


def _inside(sandbox: Sandbox, attack: Attack, facts: dict[str, Any]) -> dict[str, Any]:
    arguments = {**attack._asdict(), "facts": facts}
    result = sandbox.run_code(_program(attack.module), "run:run", arguments, timeout_s=_PROBE_TIMEOUT_S)
    if result.status == "ok" and isinstance(result.value, dict) and set(result.value) == {"worked", "detail"}:
        return result.value
    # A session that was killed for it did not get away with it.
    return {"worked": False, "detail": f"{result.status}: {result.error}"}


def _outside(attacks: Sequence[Attack], facts: dict[str, Any]) -> list[bool]:
    """Which of these attacks work in plain processes."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # as a session's folder is; a disk would be slow
    with tempfile.TemporaryDirectory(dir=memory) as folder, open(facts["secret_file"]) as secret:
        for name, source in _program(*{attack.module for attack in attacks}).items():
            Path(folder, name).write_text(source)
        done = subprocess.run(
            [PYTHON, "-E", "-s", "-S", "-B", "run.py", json.dumps({"attacks": attacks, "facts": facts})],
            cwd=folder,
            env={"SECRET": facts["secret"]},
            pass_fds=[secret.fileno()],
            capture_output=True,
            timeout=_CONTROL_TIMEOUT_S,
            check=True,
        )
    return [outcome["worked"] for outcome in json.loads(done.stdout)]


def _program(*modules: str) -> dict[str, str]:
    return {f"{name}.py": _source(name) for name in (*modules, "run")}


@cache
def _source(module: str) -> str:
    return (resources.files("agent_world.sandbox") / "probes" / f"{module}.py").read_text("utf-8")


def _messages(sandbox: Sandbox, facts: dict[str, Any]) -> Iterator[ProbeResult]:
    """From one session to another, which runs beside it or after it."""
    steps = ("leaves_a_message", "finds_a_message", "removes_a_message")
    leaves, finds, removes = (Attack(_MESSAGES, step) for step in steps)
    _, control, _ = _outside([leaves, finds, removes], facts)
    with sandbox.open_code(_program(_MESSAGES)) as neighbour:
        request = {"entry": "run:run", "arguments": {**leaves._asdict(), "facts": facts}}
        neighbour.request(request, _PROBE_TIMEOUT_S)
        beside = _inside(sandbox, finds, facts)
    after = _inside(sandbox, finds, facts)
    yield _result(sandbox, "leaves_a_message_for_its_neighbour", beside, control)
    yield _result(sandbox, "leaves_a_message_for_the_next_session", after, control)
