"""Attacks on the supervisor itself: sessions that do not keep to the protocol, or do not end.

The control of each shows that a supervisor that trusts them would be stuck, flooded, or fooled.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Callable, Iterator

from agent_world.sandbox.attacks import ProbeResult
from agent_world.sandbox.base import Sandbox
from agent_world.sandbox.errors import SessionFault
from agent_world.sandbox.guest_code import PYTHON

_SOON_S = 0.5
_LONG_S = 20.0
_PIPE = 5  # what a session gets behind its channel and its files

_LINES = {
    "answers_with_nan": b'{"n": 1, "ok": NaN}',
    "answers_with_an_infinity": b'{"n": 1, "ok": 1e999}',
    "answers_with_a_key_twice": b'{"n": 1, "ok": 1, "ok": 2}',
    "answers_with_a_lone_surrogate": b'{"n": 1, "ok": "\\ud800"}',
    "answers_with_bytes_that_are_no_text": b'{"n": 1, "ok": "\xff"}',
    "answers_with_some_nesting": b'{"n": 1, "ok": ' + b"[" * 500 + b"]" * 500 + b"}",
    "answers_with_deep_nesting": b'{"n": 1, "ok": ' + b"[" * 200_000,
    "answers_with_an_endless_number": b'{"n": 1, "ok": ' + b"9" * 6000 + b"}",
    "answers_out_of_turn": b'{"n": 2, "ok": 1}',
    "answers_with_a_truth_for_a_number": b'{"n": true, "ok": 1}',
    "answers_with_no_object": b"[1]",
    "answers_with_an_error_of_another_shape": b'{"n": 1, "error": 5}',
    "answers_twice": b'{"n": 1, "ok": 1}\n{"n": 2, "ok": 2}',
}


def try_all(sandbox: Sandbox) -> Iterator[ProbeResult]:
    """Misbehave in every way."""
    yield _runs_forever(sandbox)
    yield _writes_half_a_line(sandbox)
    yield _writes_without_end(sandbox)
    yield _stops_listening(sandbox)
    for name, line in _LINES.items():
        yield _hostile_line(sandbox, name, line)
    yield _rewrites_what_it_was_given(sandbox)
    yield _outlives_its_session(sandbox)


def _runs_forever(sandbox: Sandbox) -> ProbeResult:
    endless = "def run():\n    while True:\n        pass\n"
    with _stuck(f"{endless}\nrun()") as control:
        result = sandbox.run_code({"m.py": endless}, "m:run", timeout_s=_SOON_S)
        after = sandbox.run_code({"m.py": "def run():\n    return 1\n"}, "m:run", timeout_s=_LONG_S)
        return ProbeResult(
            name="runs_forever",
            contained=result.status == "timeout" and after.value == 1,
            control=control(),
            detail=f"{result.status}; the next session: {after.status}",
        )


def _writes_half_a_line(sandbox: Sandbox) -> ProbeResult:
    source = "import os, time\ndef run():\n    os.write(3, b'{\"n\": 1')\n    time.sleep(60)\n"
    with _stuck("import time\nprint('half', end='', flush=True)\ntime.sleep(60)") as control:
        result = sandbox.run_code({"m.py": source}, "m:run", timeout_s=_SOON_S)
        return ProbeResult(
            name="writes_half_a_line",
            contained=result.status == "timeout",
            control=control(),
            detail=f"{result.status}: {result.error}",
        )


def _writes_without_end(sandbox: Sandbox) -> ProbeResult:
    source = 'import os\ndef run():\n    while True:\n        os.write(3, b"x" * 65536)\n'
    result = sandbox.run_code({"m.py": source}, "m:run", timeout_s=_LONG_S)
    return ProbeResult(
        name="writes_without_end",
        contained=result.status == "output_too_big",
        control=_floods(),
        detail=f"{result.status}: {result.error}",
    )


def _stops_listening(sandbox: Sandbox) -> ProbeResult:
    """It answers the first request by itself and never reads the second."""
    source = 'import os, time\ndef run(x):\n    os.write(3, b\'{"n": 1, "ok": 1}\\n\')\n    time.sleep(60)\n'
    fault = "none"
    with (
        _stuck("import os\nos.write(os.pipe()[1], bytes(1 << 22))") as control,
        sandbox.open_code({"m.py": source}) as worker,
    ):
        worker.request({"entry": "m:run", "arguments": 1}, _LONG_S)
        try:
            worker.request({"entry": "m:run", "arguments": "x" * (1 << 22)}, _SOON_S)
        except SessionFault as error:
            fault = str(error)
        return ProbeResult(
            name="stops_listening", contained=fault.startswith("timeout"), control=control(), detail=fault
        )


def _hostile_line(sandbox: Sandbox, name: str, line: bytes) -> ProbeResult:
    source = f"import os, time\ndef run():\n    data = {line!r} + b'\\n'\n"
    source += "    while data:\n        data = data[os.write(3, data):]\n    time.sleep(60)\n"
    result = sandbox.run_code({"m.py": source}, "m:run", timeout_s=_LONG_S)
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
    result = sandbox.run_code({"a": b"data" * 2000, "m.py": source}, "m:run", {"fd": 4}, timeout_s=_LONG_S)
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


def _outlives_its_session(sandbox: Sandbox) -> ProbeResult:
    """A child that nobody waits for; as long as it lives, our pipe stays open."""
    source = f"import os, time\ndef run():\n    if os.fork() == 0:\n        os.fstat({_PIPE})\n        time.sleep(60)\n"
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"):
        with sandbox.open_code({"m.py": source}, descriptors=[writing]) as worker:
            os.close(writing)
            with contextlib.suppress(SessionFault):
                worker.request({"entry": "m:run", "arguments": None}, _LONG_S)
            worker.kill()
        ended = _ends(reading, _LONG_S)
    plain = "import os, time\nif os.fork() == 0:\n    time.sleep(1)\n"
    with subprocess.Popen([PYTHON, "-I", "-S", "-c", plain], stdout=subprocess.PIPE) as process:
        process.wait()
        control = process.stdout is not None and not _ends(process.stdout.fileno(), 0)
    return ProbeResult(
        name="outlives_its_session", contained=ended, control=control, detail="ended" if ended else "it is still there"
    )


def _ends(pipe: int, timeout_s: float) -> bool:
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    return bool(waiting.poll(timeout_s * 1000))


@contextlib.contextmanager
def _stuck(source: str) -> Iterator[Callable[[], bool]]:
    """A plain process, and whether who waits for its end would be waiting still."""
    process = subprocess.Popen([PYTHON, "-I", "-S", "-c", source], stdout=subprocess.DEVNULL)
    try:
        yield lambda: process.poll() is None
    finally:
        process.kill()
        process.wait()


def _floods() -> bool:
    """Whether a plain process gets more than the cap into a plain reader."""
    limit = 8 << 20
    source = f"import os\nfor _ in range({limit >> 16}):\n    os.write(1, b'x' * 65536)\n"
    done = subprocess.run([PYTHON, "-I", "-S", "-c", source], capture_output=True, timeout=60, check=False)
    return len(done.stdout) == limit


def _fools_a_plain_reader(line: bytes) -> bool:
    """Whether the usual JSON reader takes this line for a value, or fails otherwise than by refusing it as JSON."""
    try:
        json.loads(line.split(b"\n")[0])
    except json.JSONDecodeError:
        return False
    except (RecursionError, ValueError):
        return True
    return True
