"""One small world in every format: things by their key, and tools whose bodies are the same text in each."""

from __future__ import annotations

import json
import sqlite3
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

from agent_world.environments.model import Environment, Json, Table, Tool
from agent_world.identity import VersionId
from tests.toy import toy_environment

THINGS = {"lamp": {"n": 2, "colour": "red"}, "chair": {"n": 4, "colour": "blue"}, "rug": {"n": 1, "colour": "red"}}

BODIES = {
    "get": 'thing = read(key)\nif thing is None:\n    raise Refused("not_found", f"no {key}")\nreturn thing',
    "put": 'write(key, {"n": n, "colour": colour})\nreturn {"key": key}',
    "drop": "remove(key)\nreturn {}",
}
WRITING = {"put", "drop"}


class Format(ABC):
    """How a test has its world laid and its tools written. In a body `read`, `write` and `remove` are at hand."""

    runtime: str
    state_format: str
    log_descriptor: int

    def environment(self, bodies: Mapping[str, str] | None = None, *, writes: bool = True) -> Environment:
        """The world with its own tools and others of these bodies, which write unless `writes` is off."""
        given = bodies or {}
        sources = self.sources({**BODIES, **given})
        table = Table(
            name="things", singular="thing", plural="things", columns=(), primary_key=("key",), rows=len(THINGS),
            workflow="order",
        )  # fmt: skip
        toy = toy_environment()
        return replace(
            toy,
            environment_id=f"things-{self.state_format}",
            version=VersionId(f"things-{self.state_format}@0"),
            database=replace(toy.database, tables=(table,), documents=()),
            tools=tuple(_tool(name, source, name in WRITING or (name in given and writes)) for name, source in sources),
            tool_versions=tuple(VersionId(f"{name}@0") for name, _ in sources),
            files=self.files(THINGS),
            runtime=self.runtime,
            state_format=self.state_format,
        )

    @abstractmethod
    def files(self, things: Mapping[str, Json]) -> dict[str, bytes]:
        """A snapshot that holds these things."""

    @abstractmethod
    def sources(self, bodies: Mapping[str, str]) -> list[tuple[str, str]]:
        """The source of each tool by its name."""


class Functions(Format):
    """Ours: functions over SQLite and files."""

    runtime, state_format, log_descriptor = "python-function", "sqlite+files", 5

    def files(self, things: Mapping[str, Json]) -> dict[str, bytes]:
        db = sqlite3.connect(":memory:")
        db.execute("CREATE TABLE things (key TEXT PRIMARY KEY, n INTEGER, colour TEXT)")
        db.executemany(
            "INSERT INTO things VALUES (?, ?, ?)", [(key, thing["n"], thing["colour"]) for key, thing in things.items()]
        )
        db.commit()
        return {"data.sqlite": db.serialize()}

    def sources(self, bodies: Mapping[str, str]) -> list[tuple[str, str]]:
        return [(name, _FUNCTION.replace("NAME", name) + _indented(body, 4)) for name, body in bodies.items()]


class Classes(Format):
    """Made elsewhere: a class over a JSON object."""

    runtime, state_format, log_descriptor = "python-class", "json", 5

    def files(self, things: Mapping[str, Json]) -> dict[str, bytes]:
        return {"state.json": json.dumps({"things": dict(things), "opened": 0}).encode()}

    def sources(self, bodies: Mapping[str, str]) -> list[tuple[str, str]]:
        methods = [_METHOD.replace("NAME", name) + _indented(body, 8) for name, body in bodies.items()]
        source = _CLASS + "\n".join(methods)
        return [(name, source) for name in bodies]


FORMATS = (Functions(), Classes())

_FUNCTION = """import os
from toolkit import Refused

SEEN = []


def NAME(world, *, key=None, n=None, colour=None):
    def read(key):
        row = world.db.execute("SELECT n, colour FROM things WHERE key = ?", (key,)).fetchone()
        return dict(row) if row else None

    def write(key, thing):
        world.db.execute("INSERT OR REPLACE INTO things VALUES (?, ?, ?)", (key, thing["n"], thing["colour"]))

    def remove(key):
        world.db.execute("DELETE FROM things WHERE key = ?", (key,))

"""

_CLASS = """import os
from toolkit import Refused

SEEN = []


class Base:
    def get(self, **arguments):
        raise AssertionError("each world has its own")


class Things(Base):
    def __init__(self, state):
        self.state = state

    def _bound(self):
        things = self.state["things"]
        return things.get, things.__setitem__, lambda key: things.pop(key, None)

"""

_METHOD = """    def NAME(self, key=None, n=None, colour=None):
        read, write, remove = self._bound()
"""


def _indented(body: str, by: int) -> str:
    return textwrap.indent(body, " " * by) + "\n"


def _tool(name: str, source: str, writes: bool) -> Tool:
    anything = {"type": "object"}
    return Tool(
        tool_id=name, name=name, description="", input_schema=anything, output_schema=anything, writes=writes,
        source=source, pattern="test", tables=(),
    )  # fmt: skip
