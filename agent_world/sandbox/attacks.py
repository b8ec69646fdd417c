"""Attacks a back-end and says what it held; a back-end that lets one attack through is not used.

Every attack runs twice: in a session, and as a control in a plain process, which shows that it works where nothing
stops it. The verdict is kept per host and version of everything it depends on.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from agent_world.sandbox import strict_json
from agent_world.sandbox.base import Sandbox
from agent_world.sandbox.bwrap import PYTHON
from agent_world.sandbox.errors import SandboxUnavailableError

_CONTROL_TIMEOUT_S = 120.0
_PROBE_TIMEOUT_S = 20.0
_SOON_S = 0.5

ATTACKS = (
    "reads_a_host_file",
    "reads_the_accounts",
    "lists_the_programs_of_the_host",
    "writes_a_host_file",
    "reads_the_environment",
    "reads_the_environment_of_any_process",
    "sees_other_processes",
    "signals_a_host_process",
    "connects_to_a_host_port",
    "connects_to_an_abstract_socket",
    "opens_a_datagram_socket",
    "opens_a_netlink_socket",
    "passes_a_descriptor_on",
    "starts_a_program",
    "spawns_without_fork",
    "forks",
    "starts_a_thread",
    "runs_a_script_from_its_folder",
    "makes_a_user_namespace",
    "mounts_a_file_system",
    "lets_itself_be_traced",
    "reads_memory_by_process_id",
    "adds_a_kernel_key",
    "sets_up_io_uring",
    "makes_an_anonymous_file",
    "makes_shared_memory",
    "makes_a_link_out",
    "makes_a_pipe_file",
    "calls_the_old_system_call_table",
    "writes_a_setting_of_the_kernel",
    "changes_its_limits",
    "chooses_its_processors",
    "takes_two_gigabytes",
    "writes_a_huge_file",
    "makes_thousands_of_files",
    "opens_hundreds_of_files",
    "writes_outside_its_folder",
    "finds_an_open_descriptor",
)

_HOSTILE_LINES = {
    "answers_with_nan": b'{"n": 1, "ok": NaN}',
    "answers_with_a_key_twice": b'{"n": 1, "ok": 1, "ok": 2}',
    "answers_with_a_lone_surrogate": b'{"n": 1, "ok": "\\ud800"}',
    "answers_with_deep_nesting": b'{"n": 1, "ok": ' + b"[" * 200_000,
    "answers_with_an_endless_number": b'{"n": 1, "ok": ' + b"9" * 6000 + b"}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """One attack: whether the sandbox held it, whether it works outside of it, and what it met inside."""

    name: str
    contained: bool
    control: bool
    detail: str


def selftest(sandbox: Sandbox) -> list[ProbeResult]:
    """Try every attack on this sandbox."""
    with _facts() as facts:
        controls = _outside(ATTACKS, facts)
        results = [_attack(sandbox, name, facts, controls[name]["worked"]) for name in ATTACKS]
        results.append(_talks_to_its_neighbour(sandbox, facts))
    results += [_runs_forever(sandbox), _writes_half_a_line(sandbox), _writes_without_end(sandbox)]
    results += [_hostile_line(sandbox, name, line) for name, line in _HOSTILE_LINES.items()]
    results.append(_rewrites_what_it_was_given(sandbox))
    return results


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
        return [result.name for result in selftest(sandbox) if not result.contained]


def _fingerprint(backend: type[Sandbox]) -> str:
    """What a verdict depends on: the host and its kernel, the programs, our own code, the user's rights."""
    digest = hashlib.sha256()
    host = Path("/etc/machine-id")
    digest.update(host.read_bytes() if host.exists() else socket.gethostname().encode())
    digest.update(repr((tuple(os.uname()), os.geteuid() == 0, backend.backend)).encode())
    for program in backend.programs():
        status = os.stat(program)
        digest.update(repr((program, status.st_size, status.st_mtime_ns)).encode())
    for file in _own_code():
        digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


def _own_code() -> list[Any]:
    package = resources.files("agent_world.sandbox")
    files = [*package.iterdir(), *(package / "guest").iterdir()]
    return sorted((file for file in files if file.name.endswith(".py")), key=lambda file: (file.name, str(file)))


@contextlib.contextmanager
def _facts() -> Iterator[dict[str, Any]]:
    """Plant what the attacks are after: a secret in a file, a listener, an abstract socket, a victim."""
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
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0agent-world-{secret}")
        abstract.listen()
        victim = subprocess.Popen(["/bin/sleep", "600"])
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        yield {
            "secret": secret,
            "secret_file": str(folder / "secret"),
            "open_folder": str(opened),
            "port": listener.getsockname()[1],
            "abstract": f"agent-world-{secret}",
            "victim": victim.pid,
            "message": f"message-{secret}",
        }


def _attack(sandbox: Sandbox, name: str, facts: dict[str, Any], control: bool) -> ProbeResult:
    inside = _inside(sandbox, name, facts)
    return ProbeResult(name=name, contained=not inside["worked"], control=control, detail=str(inside["detail"]))


def _inside(sandbox: Sandbox, name: str, facts: dict[str, Any]) -> dict[str, Any]:
    result = sandbox.run_code(
        {"probes.py": _source()}, "probes:run", {"name": name, "facts": facts}, timeout_s=_PROBE_TIMEOUT_S
    )
    if result.status == "ok" and isinstance(result.value, dict) and set(result.value) == {"worked", "detail"}:
        return result.value
    # A session that was killed for it did not get away with it.
    return {"worked": False, "detail": f"{result.status}: {result.error}"}


def _outside(names: Sequence[str], facts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What becomes of these attacks in plain processes."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # as a session's folder is; a disk would be slow
    with tempfile.TemporaryDirectory(dir=memory) as folder, open(facts["secret_file"]) as secret:
        done = subprocess.run(
            [PYTHON, "-I", "-S", "-c", _source(), json.dumps(facts), *names],
            cwd=folder,
            env={"SECRET": facts["secret"]},
            pass_fds=[secret.fileno()],
            capture_output=True,
            timeout=_CONTROL_TIMEOUT_S,
            check=True,
        )
    return json.loads(done.stdout)


def _source() -> str:
    return (resources.files("agent_world.sandbox") / "probes.py").read_text("utf-8")


def _talks_to_its_neighbour(sandbox: Sandbox, facts: dict[str, Any]) -> ProbeResult:
    _inside(sandbox, "leaves_a_message", facts)
    inside = _inside(sandbox, "finds_a_message", facts)
    outside = _outside(["leaves_a_message", "finds_a_message"], facts)["finds_a_message"]
    for folder in ("/dev/shm", "/tmp", "/var/tmp"):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, facts["message"]))
    return ProbeResult(
        name="leaves_a_message_for_the_next_session",
        contained=not inside["worked"],
        control=outside["worked"],
        detail=str(inside["detail"]),
    )


def _runs_forever(sandbox: Sandbox) -> ProbeResult:
    endless = "def run():\n    while True:\n        pass\n"
    result = sandbox.run_code({"m.py": endless}, "m:run", timeout_s=_SOON_S)
    after = sandbox.run_code({"m.py": "def run():\n    return 1\n"}, "m:run")
    return ProbeResult(
        name="runs_forever",
        contained=result.status == "timeout" and after.value == 1,
        control=_hangs(f"{endless}\nrun()"),
        detail=f"{result.status}; the next session: {after.status}",
    )


def _writes_half_a_line(sandbox: Sandbox) -> ProbeResult:
    source = "import os, time\ndef run():\n    os.write(3, b'{\"n\": 1')\n    time.sleep(60)\n"
    result = sandbox.run_code({"m.py": source}, "m:run", timeout_s=_SOON_S)
    return ProbeResult(
        name="writes_half_a_line",
        contained=result.status == "timeout",
        control=_hangs("import time\nprint('half', end='', flush=True)\ntime.sleep(60)"),
        detail=f"{result.status}: {result.error}",
    )


def _writes_without_end(sandbox: Sandbox) -> ProbeResult:
    source = 'import os\ndef run():\n    while True:\n        os.write(3, b"x" * 65536)\n'
    result = sandbox.run_code({"m.py": source}, "m:run", timeout_s=_PROBE_TIMEOUT_S)
    return ProbeResult(
        name="writes_without_end",
        contained=result.status == "output_too_big",
        control=_floods(),
        detail=f"{result.status}: {result.error}",
    )


def _hostile_line(sandbox: Sandbox, name: str, line: bytes) -> ProbeResult:
    source = f"import os, time\ndef run():\n    data = {line!r} + b'\\n'\n"
    source += "    while data:\n        data = data[os.write(3, data):]\n    time.sleep(60)\n"
    result = sandbox.run_code({"m.py": source}, "m:run", timeout_s=_PROBE_TIMEOUT_S)
    return ProbeResult(
        name=name,
        contained=result.status == "protocol_error",
        control=_fools_a_plain_reader(line),
        detail=f"{result.status}: {result.error}",
    )


def _rewrites_what_it_was_given(sandbox: Sandbox) -> ProbeResult:
    """The snapshot that every session of an environment maps must stay as it is."""
    source = (
        "import mmap, os\n"
        "def run(fd):\n"
        "    tries = [\n"
        "        lambda: os.pwrite(fd, b'evil', 0),\n"
        "        lambda: os.ftruncate(fd, 0),\n"
        "        lambda: mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE).write(b'evil'),\n"
        "    ]\n"
        "    for attempt in tries:\n"
        "        try:\n"
        "            attempt()\n"
        "        except (OSError, ValueError):\n"
        "            pass\n"
        "    return os.pread(fd, 4, 0) != b'data'\n"
    )
    result = sandbox.run_code({"a": b"data" * 2000, "m.py": source}, "m:run", {"fd": 4})
    with tempfile.TemporaryFile() as plain:
        plain.write(b"data" * 2000)
        plain.flush()
        space: dict[str, Callable[[int], bool]] = {}
        exec(source, space)
        control = space["run"](plain.fileno())
    return ProbeResult(
        name="rewrites_what_it_was_given",
        contained=result.status == "ok" and result.value is False,
        control=control,
        detail=f"{result.status}: {result.error}" if result.error else "unchanged",
    )


def _hangs(source: str) -> bool:
    """Whether a plain reader of a plain process is still waiting after a while."""
    try:
        subprocess.run([PYTHON, "-I", "-S", "-c", source], timeout=_SOON_S, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return True
    return False


def _floods() -> bool:
    """Whether a plain process gets more than the cap into a plain reader."""
    limit = 8 << 20
    source = f"import os\nfor _ in range({limit >> 16}):\n    os.write(1, b'x' * 65536)\n"
    done = subprocess.run([PYTHON, "-I", "-S", "-c", source], capture_output=True, timeout=60, check=False)
    return len(done.stdout) == limit


def _fools_a_plain_reader(line: bytes) -> bool:
    """Whether the usual JSON reader takes this line for a value, or fails otherwise than by refusing it as JSON."""
    try:
        json.loads(line)
    except json.JSONDecodeError:
        return False
    except (RecursionError, ValueError):
        return True
    try:
        strict_json.loads(line)
    except ValueError:
        return True
    return False
