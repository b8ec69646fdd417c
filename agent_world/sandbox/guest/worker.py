"""The loop of a session: requests come in as JSON lines, one reply line goes out for each."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import pins
import storage
import toolkit

CHANNEL = 3
_READ_BYTES = 1 << 16
_MESSAGE_CHARACTERS = 400
_STDOUT_CHARACTERS = 1 << 16

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
    os.closerange(CHANNEL + len(descriptors), base + len(descriptors))
    return CHANNEL, list(range(CHANNEL + 1, CHANNEL + len(descriptors)))


def serve(channel: int, files: list[int]) -> None:
    """Answer requests until the supervisor closes its end."""
    session = Session(files)
    operations: dict[str, Callable[[dict], Json]] = {
        "world": session.make_world,
        "call": session.call,
        "run": session.run,
    }
    buffer = b""
    while True:
        line, newline, buffer = buffer.partition(b"\n")
        while not newline:
            data = os.read(channel, _READ_BYTES)
            if not data:
                return
            more, newline, buffer = data.partition(b"\n")
            line += more
        request = json.loads(line)
        reply = operations[request["op"]](request)
        if reply is not None:
            _send(channel, reply)


class Session:
    """What one session holds: its world and the tools it has loaded so far."""

    def __init__(self, files: list[int]) -> None:
        self._files = files
        self._tools: dict[str, Callable[..., Json]] = {}
        self._log = -1

    def make_world(self, request: dict) -> None:
        """Open the database and the documents. Descriptors: snapshot, log, documents, log of documents."""
        snapshot, log, documents, self._log = self._files
        self.db = storage.connect(snapshot, log)
        self.db.create_function("fold", 1, toolkit.fold, deterministic=True)
        self.db.create_function("random", 0, pins.random_integer)
        self.db.create_function("randomblob", 1, os.urandom)
        self.documents = toolkit.Documents(documents, request["documents"])
        self.world = toolkit.World(self.db, self.documents, request["seed"])
        pins.seed(request["seed"])

    def call(self, request: dict) -> Json:
        """Run one tool in a transaction of its own."""
        name = request["tool"]
        db, world = self.db, self.world
        minted, changes = dict(world._minted), db.total_changes
        db.execute("BEGIN")
        try:
            value = self._tool(name, request)(world, **request["arguments"])
            if not isinstance(value, dict):
                raise TypeError(f"the tool returned {type(value).__name__}, not an object")
            reply = json.dumps({"n": request["n"], "ok": value}, allow_nan=False)
            wrote = db.total_changes != changes or bool(self.documents.pending)
            if wrote and not request["writes"]:
                raise PermissionError("the tool is declared read-only, but it changed the state")
            if not db.in_transaction:
                raise RuntimeError("the tool ended the transaction of its call")
            db.execute("COMMIT")
        except BaseException as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            self.documents.pending = {}
            world._minted = minted
            return {"n": request["n"], **_failure(error)}
        for path, text in self.documents.commit().items():
            os.write(self._log, json.dumps([path, text]).encode() + b"\n")
        if wrote:
            pins.tick()
        return reply

    def run(self, request: dict) -> Json:
        """Lay files in /work, import a module and call one of its functions."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                pins.seed(request["seed"])
                value = self._entry(request)
                reply = {"ok": value}
                json.dumps(value, allow_nan=False)
            except BaseException as error:
                reply = _failure(error)
        return {"n": request["n"], **reply, "stdout": out.getvalue()[:_STDOUT_CHARACTERS]}

    def _entry(self, request: dict) -> Json:
        for path, (offset, size) in request["files"].items():
            if "/" in path:
                os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(os.pread(self._files[0], size, offset))
        sys.path.insert(0, "/work")
        module, function = request["entry"].split(":")
        arguments = request["arguments"]
        target = getattr(__import__(module, fromlist=[function]), function)
        if arguments is None:
            return target()
        return target(**arguments) if isinstance(arguments, dict) else target(arguments)

    def _tool(self, name: str, request: dict) -> Callable[..., Json]:
        if name not in self._tools:
            module = types.ModuleType(name)
            exec(compile(request["source"], f"<{name}>", "exec"), module.__dict__)
            self._tools[name] = module.__dict__[name]
        return self._tools[name]


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
