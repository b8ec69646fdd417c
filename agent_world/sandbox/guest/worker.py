"""The loop of a session: requests come in as JSON lines, one reply line goes out for each."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pins
import tools
import verifying

CHANNEL = 3
_READ_BYTES = 1 << 16
_STDOUT_CHARACTERS = 1 << 16
_ALL_DESCRIPTORS = 1 << 20

Json = Any


def arrange(descriptors: list[int]) -> tuple[int, list[int]]:
    """Move the session's descriptors to 3, 4, ... and close every other; standard streams lead nowhere."""
    base = 100
    for index, descriptor in enumerate(descriptors):
        os.dup2(descriptor, base + index)
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    for index in range(len(descriptors)):
        os.dup2(base + index, CHANNEL + index)
    os.closerange(CHANNEL + len(descriptors), _ALL_DESCRIPTORS)
    return CHANNEL, list(range(CHANNEL + 1, CHANNEL + len(descriptors)))


def serve(channel: int, files: list[int]) -> None:
    """Set up what the first line asks for and say so, then answer requests until the supervisor closes its end.

    Foreign code runs from the first request on; until the word is out that the session is ready, everything said here
    is our own.
    """
    lines = _lines(channel)
    try:
        setup = json.loads(next(lines))
        pins.seed(setup["seed"])
        answer = _KINDS[setup["kind"]](setup, files)
    except Exception as error:
        _send(channel, {"fatal": f"{type(error).__name__}: {error}"})
        return
    _send(channel, {"ready": True})
    for line in lines:
        _send(channel, answer(json.loads(line)))


def _lines(channel: int) -> Iterator[bytes]:
    buffer = b""
    while True:
        line, newline, rest = buffer.partition(b"\n")
        if newline:
            yield line
            buffer = rest
        elif data := os.read(channel, _READ_BYTES):
            buffer += data
        else:
            return


def _code_in_a_folder(setup: dict, files: list[int]) -> Callable[[dict], Json]:
    """Lay the files of the one descriptor in the working folder, where modules are imported from."""
    for path, (offset, size) in setup["files"].items():
        if "/" in path:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(os.pread(files[0], size, offset))
    sys.path.insert(0, os.getcwd())
    return _run


def _run(request: dict) -> Json:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            reply = {"ok": _entered(request["entry"], request["arguments"])}
            json.dumps(reply, allow_nan=False)
        except BaseException as error:
            reply = tools.failure(error)
    return {"n": request["n"], **reply, "stdout": out.getvalue()[:_STDOUT_CHARACTERS]}


def _entered(entry: str, arguments: Json) -> Json:
    module, function = entry.split(":")
    target = getattr(importlib.import_module(module), function)
    if arguments is None:
        return target()
    return target(**arguments) if isinstance(arguments, dict) else target(arguments)


_KINDS: dict[str, Callable[[dict, list[int]], Callable[[dict], Json]]] = {
    "python-function": lambda setup, files: tools.FunctionTools(setup, files).call,
    "python-class": lambda setup, files: tools.ClassTools(setup, files).call,
    "code": _code_in_a_folder,
    "verifier": lambda setup, files: verifying.Judge(setup, files).judge,
}
"""What a session is for: the tools of an environment of that runtime, code in a folder, or the verifier of a task."""


def _send(channel: int, reply: Json) -> None:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    view = memoryview(text.encode() + b"\n")
    while view:
        view = view[os.write(channel, view) :]
