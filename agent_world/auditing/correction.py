"""A part that turned out broken, and what stands in its place: the source of a tool, or how a task is judged."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agent_world.codec import decode, encode
from agent_world.environments.model import Environment, Tool
from agent_world.errors import BadInputError
from agent_world.identity import Digest, VersionId, sha256
from agent_world.tasks.model import Task

if TYPE_CHECKING:
    from agent_world.world import World

JUDGING = ("answer", "answer_schema", "rubric", "solution", "state_diff", "verifier")
"""Fields of a task that a correction may replace: what it is judged by. What was asked stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The broken part and, where one is at hand, the right one: exactly one of `tool` and `task` is set.

    `data` is the file that the right one came from; None: there is none, and the part is tried as it is.
    """

    part: VersionId
    tool: Tool | None = None
    task: Task | None = None
    data: bytes | None = None

    @property
    def digest(self) -> Digest | None:
        """The sha256 of the file."""
        return None if self.data is None else sha256(self.data)

    def environment(self, found: Environment) -> Environment:
        """The environment as it would have been; its version still names the one that it was."""
        if self.tool is None or self.part not in found.tool_versions:
            return found
        pairs = zip(found.tools, found.tool_versions, strict=True)
        return replace(found, tools=tuple(self.tool if version == self.part else tool for tool, version in pairs))


def read_correction(world: World, ref: str, file: Path | None) -> Correction:
    """The part that `ref` means, a tool or a task, with what `file` puts in its place.

    Of a tool the file is its Python source; of a task the Python source of its verifier (``.py``), or JSON with the
    fields of `JUDGING` that are replaced.

    Raises:
        NotFoundError: nothing, or more than one thing, is called `ref`.
        BadInputError: the part is of another kind, or the file does not fit it.
    """
    version = world.find(ref)
    kind, payload = world.kind_of(version), world.payload(version)
    if kind not in ("tool", "task"):
        cure = f"name a tool or a task, or see what it touched: agent-world lineage impact {version}"
        raise BadInputError(version, f"it is a {kind}, which nothing can be replayed with", cure)
    data = None if file is None else _read(file)
    if kind == "tool":
        tool = decode(Tool, payload)
        if file is not None and data is not None:
            tool = replace(tool, source=_source(file, data, tool.name))
        return Correction(part=version, tool=tool, data=data)
    task = decode(Task, payload)
    if file is not None and data is not None:
        task = decode(Task, payload | _judging(file, data, task))
    return Correction(part=version, task=task, data=data)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInputError(str(file), error.strerror or str(error), "name a file that can be read") from error


def _source(file: Path, data: bytes, name: str) -> str:
    """Python that defines the function `name`; it is parsed here and run in the sandbox only."""
    try:
        source = data.decode()
        module = ast.parse(source)
    except UnicodeDecodeError as error:
        raise BadInputError(f"{file}, byte {error.start}", "it is not UTF-8", "save it as UTF-8") from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BadInputError(f"{file}{line}", f"it is not Python: {why}", "correct it and try again") from error
    if not any(isinstance(each, ast.FunctionDef) and each.name == name for each in module.body):
        raise BadInputError(
            str(file), f"it defines no function {name!r}", f"write the whole module with {name!r} in it"
        )
    return source


def _judging(file: Path, data: bytes, task: Task) -> dict[str, Any]:
    if file.suffix == ".py":
        if task.kind != "program":
            cure = "give JSON with its rubric, answer or state_diff"
            raise BadInputError(str(file), f"{task.task_id} is a graph task and has no verifier", cure)
        return {"verifier": _source(file, data, "verify")}
    cure = f"give a JSON object with some of {', '.join(JUDGING)}, or the verifier as a .py file"
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadInputError(str(file), f"it is not JSON: {error}", cure) from error
    strange = sorted(set(fields) - set(JUDGING)) if isinstance(fields, dict) else []
    if not isinstance(fields, dict) or not fields or strange:
        raise BadInputError(str(file), f"it names {', '.join(strange) or 'nothing'} of a task", cure)
    for name, value in fields.items():
        try:
            decode(Task, {**encode(task), name: value})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise BadInputError(f"{file}, {where}", first["msg"], "correct it and try again") from error
    return fields
