"""The loop of a session: requests come in as JSON lines, one reply line goes out for each."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pins
import storage
import toolkit

CHANNEL = 3
_READ_BYTES = 1 << 16
_MESSAGE_CHARACTERS = 400
_STDOUT_CHARACTERS = 1 << 16
_RESULT_CHARACTERS = 1 << 20
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
        answer = {"world": _tools_over_a_world, "code": _code_in_a_folder}[setup["kind"]](setup, files)
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


def _tools_over_a_world(setup: dict, files: list[int]) -> Callable[[dict], Json]:
    return Tools(setup, files).call


class Tools:
    """The tools of one environment over one world, loaded when first called."""

    def __init__(self, setup: dict, files: list[int]) -> None:
        """Descriptors: snapshot, its log, documents, their log."""
        snapshot, log, documents, self._log = files
        self._tools: dict[str, Callable[..., Json]] = {}
        db = storage.connect(snapshot, log)
        db.create_function("fold", 1, toolkit.fold, deterministic=True)
        db.create_function("random", 0, pins.random_integer)
        db.create_function("randomblob", 1, os.urandom)
        self.documents = toolkit.Documents(documents, setup["documents"])
        self.world = toolkit.World(db, self.documents, setup["seed"])

    def call(self, request: dict) -> Json:
        """Run one tool in a transaction of its own."""
        try:
            with self.world.transaction(writes=request["writes"]):
                value = self._tool(request["tool"], request)(self.world, **request["arguments"])
                if not isinstance(value, dict):
                    raise TypeError(f"the tool returned {type(value).__name__}, not an object")
                reply = json.dumps({"n": request["n"], "ok": value}, allow_nan=False)
                if len(reply) > _RESULT_CHARACTERS:
                    raise ValueError(
                        f"the result has {len(reply)} characters, at most {_RESULT_CHARACTERS} are allowed"
                    )
        except BaseException as error:
            return {"n": request["n"], **_failure(error)}
        for path, text in self.documents.commit().items():
            os.write(self._log, json.dumps([path, text]).encode() + b"\n")
        return reply

    def _tool(self, name: str, request: dict) -> Callable[..., Json]:
        if name not in self._tools:
            module = types.ModuleType(name)
            exec(compile(request["source"], f"<{name}>", "exec"), module.__dict__)
            self._tools[name] = module.__dict__[name]
        return self._tools[name]


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
            reply = _failure(error)
    return {"n": request["n"], **reply, "stdout": out.getvalue()[:_STDOUT_CHARACTERS]}


def _entered(entry: str, arguments: Json) -> Json:
    module, function = entry.split(":")
    target = getattr(importlib.import_module(module), function)
    if arguments is None:
        return target()
    return target(**arguments) if isinstance(arguments, dict) else target(arguments)


def _failure(error: BaseException) -> dict[str, Json]:
    if isinstance(error, toolkit.Refused):
        return {"refused": [error.code, error.message]}
    try:
        message = str(error)
    except BaseException:
        message = ""
    return {"error": [type(error).__name__, message[:_MESSAGE_CHARACTERS]]}


def _send(channel: int, reply: Json) -> None:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    view = memoryview(text.encode() + b"\n")
    while view:
        view = view[os.write(channel, view) :]
