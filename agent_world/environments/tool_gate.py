"""The gate of tools and of their environment (design.md 7): what compiles, holds its schema, is stable and passes.

A tool is kept when it compiles, more than half of its tests pass, its schemas are valid and true of what it gave, two
runs agree and leave a state that can be read, and no tool before it has its name. A kept tool with failing tests shows
them in its verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import jsonschema

from agent_world.environments.model import Database, Environment, Json, Tool, ToolTest
from agent_world.environments.session import open_session
from agent_world.environments.tool_tests import TestResult, run_tests
from agent_world.identity import Digest, VersionId
from agent_world.sandbox import Sandbox

ToolReason = Literal[
    "does_not_compile",
    "wrong_signature",
    "bad_schema",
    "shadowed",
    "no_tests",
    "low_accuracy",
    "broken_output",
    "unstable",
    "corrupt_state",
]
EnvironmentReason = Literal["no_tool", "no_test", "unstable_reset", "too_few_rounds"]

_SOURCE_BYTES = 64_000

_COMPILER = '''
import ast


def check(sources, names):
    """What is wrong with each source, None when it is a module that defines the function of that name."""
    return [_check(source, name) for source, name in zip(sources, names)]


def _check(source, name):
    try:
        tree = ast.parse(source)
        compile(tree, f"<{name}>", "exec")
    except Exception as error:
        return [type(error).__name__, str(error)[:200], []]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            given = node.args
            names = [argument.arg for argument in (*given.args[1:], *given.kwonlyargs)]
            needed = [argument.arg for argument, default in zip(given.kwonlyargs, given.kw_defaults) if default is None]
            return [None, "", [names, needed, [argument.arg for argument in given.args[:1]]]]
    return [None, f"it defines no function {name}", []]
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolVerdict:
    """What the gate says of one tool. `reasons` is empty exactly when it is accepted; `detail` explains them.

    `accuracy` is ``Acc(f; C_f)``, the share of its tests that passed; None when none ran.
    """

    tool: Tool
    accepted: bool
    accuracy: float | None
    reasons: tuple[ToolReason, ...] = ()
    detail: str = ""
    results: tuple[TestResult, ...] = ()

    @property
    def failed(self) -> tuple[TestResult, ...]:
        """The tests that did not pass."""
        return tuple(result for result in self.results if not result.passed)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentVerdict:
    """What the gate says of an environment; `digest` is that of its state after a reset.

    `rounds` are the complexification rounds that added something which a kept tool uses.
    """

    accepted: bool
    reasons: tuple[EnvironmentReason, ...]
    digest: Digest | None
    tools: int
    tests: int
    rounds: int


def check_tools(
    database: Database, files: Mapping[str, bytes], tools: Sequence[Tool], tests: Sequence[ToolTest], sandbox: Sandbox
) -> list[ToolVerdict]:
    """A verdict for each of `tools`, in their order. `tests` may be of any of them; a shadowed one is not run.

    Raises:
        SandboxFailedError: the harness failed, not a tool.
    """
    found = {id(tool): _static_fault(tool) for tool in tools}
    taken: set[str] = set()
    for tool in tools:
        if tool.name in taken:
            found[id(tool)] = found[id(tool)] or ("shadowed", f"another tool is called {tool.name} already")
        taken.add(tool.name)
    rest = [tool for tool in tools if found[id(tool)] is None]
    for tool, fault in zip(rest, _compiled(rest, sandbox), strict=True):
        found[id(tool)] = fault
    sound = [tool for tool in tools if found[id(tool)] is None]
    names = {tool.name for tool in sound}
    results = run_tests(candidate(database, files, sound), [test for test in tests if test.tool in names], sandbox)
    return [
        _refused(tool, *fault)
        if (fault := found[id(tool)])
        else _verdict(tool, [r for r in results if r.test.tool == tool.name])
        for tool in tools
    ]


def check_environment(
    database: Database,
    files: Mapping[str, bytes],
    verdicts: Iterable[ToolVerdict],
    sandbox: Sandbox,
    *,
    least_rounds: int = 0,
) -> EnvironmentVerdict:
    """Whether the kept tools make an environment: one at least, with a test that passes, and a reset that is stable.

    Of the complexification rounds of its database, they must use what at least `least_rounds` added.
    """
    kept = [verdict for verdict in verdicts if verdict.accepted]
    passed = sum(result.passed for verdict in kept for result in verdict.results)
    environment = candidate(database, files, [verdict.tool for verdict in kept])
    digests = []
    for seed in (1, 1):
        with open_session(environment, seed, sandbox) as session:
            digests.append(session.digest())
    rounds = _used_rounds(database, [verdict.tool for verdict in kept])
    reasons: list[EnvironmentReason] = []
    if not kept:
        reasons.append("no_tool")
    if not passed:
        reasons.append("no_test")
    if digests[0] != digests[1]:
        reasons.append("unstable_reset")
    if len(rounds) < least_rounds:
        reasons.append("too_few_rounds")
    return EnvironmentVerdict(
        accepted=not reasons, reasons=tuple(reasons), digest=digests[0], tools=len(kept), tests=passed,
        rounds=len(rounds),
    )  # fmt: skip


def _used_rounds(database: Database, tools: Iterable[Tool]) -> set[int]:
    """The complexification rounds that added a table or a document which one of these tools uses."""
    used = {name for tool in tools for name in (*tool.tables, *tool.documents)}
    added = [(table.name, table.added_in) for table in database.tables if table.workflow is None]
    added += [(document.path, document.added_in) for document in database.documents]
    return {round for name, round in added if round > 0 and name in used}


def candidate(database: Database, files: Mapping[str, bytes], tools: Sequence[Tool]) -> Environment:
    """An environment that has no version yet, to try tools in."""
    return Environment(
        environment_id=database.database_id,
        version=VersionId(f"{database.database_id}@candidate"),
        title=database.database_id,
        description="",
        theme=database.theme,
        database=database,
        database_version=VersionId(f"{database.database_id}@candidate"),
        tools=tuple(tools),
        tool_versions=tuple(VersionId(f"{tool.tool_id}@candidate") for tool in tools),
        files=files,
    )


def _static_fault(tool: Tool) -> tuple[ToolReason, str] | None:
    """What is wrong with a tool before any of its code is touched."""
    if len(tool.source.encode()) > _SOURCE_BYTES:
        return "does_not_compile", f"the source is longer than {_SOURCE_BYTES} bytes"
    for side, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            return "bad_schema", f"the {side} schema is no JSON Schema: {error.message}"
        if schema.get("type") != "object":
            return "bad_schema", f"the {side} schema is not of an object"
    return None


def _compiled(tools: Sequence[Tool], sandbox: Sandbox) -> list[tuple[ToolReason, str] | None]:
    """What the compiler in the sandbox says of each tool; a source that kills it is found by trying one at a time."""
    if not tools:
        return []
    arguments = {"sources": [tool.source for tool in tools], "names": [tool.name for tool in tools]}
    run = sandbox.run_code({"compiler.py": _COMPILER}, "compiler:check", arguments)
    if run.status != "ok" and len(tools) > 1:
        return [fault for tool in tools for fault in _compiled([tool], sandbox)]
    if run.status != "ok":
        return [("does_not_compile", run.error or run.status)]
    return [_signature_fault(tool, *found) for tool, found in zip(tools, run.value, strict=True)]


def _signature_fault(
    tool: Tool, error: str | None, detail: str, signature: list[Json]
) -> tuple[ToolReason, str] | None:
    if error is not None:
        return "does_not_compile", f"{error}: {detail}"
    if not signature:
        return "wrong_signature", detail
    names, needed, first = signature
    properties = tool.input_schema.get("properties", {})
    if len(first) != 1 or set(names) != set(properties):
        return (
            "wrong_signature",
            f"it takes {', '.join(names) or 'nothing'}, its schema {', '.join(properties) or 'nothing'}",
        )
    if missing := sorted(set(needed) - set(tool.input_schema.get("required", []))):
        return "wrong_signature", f"{', '.join(missing)} may be left out by the schema, but has no default"
    return None


def _verdict(tool: Tool, results: list[TestResult]) -> ToolVerdict:
    if not results:
        return _refused(tool, "no_tests", "nothing tests it")
    accuracy = sum(result.passed for result in results) / len(results)
    reasons: list[ToolReason] = []
    own = [result for result in results if result.test.call.tool == tool.name]
    if any(result.reason == "broken_output" for result in own):
        reasons.append("broken_output")
    if any(result.reason == "unstable" for result in own):
        reasons.append("unstable")
    if any(result.reason == "corrupt_state" for result in own):
        reasons.append("corrupt_state")
    if not accuracy > 0.5:
        reasons.append("low_accuracy")
    failing = "; ".join(f"{result.test.name}: {result.reason}" for result in results if not result.passed)
    return ToolVerdict(
        tool=tool,
        accepted=not reasons,
        accuracy=accuracy,
        reasons=tuple(reasons),
        detail=failing,
        results=tuple(results),
    )


def _refused(tool: Tool, reason: ToolReason, detail: str) -> ToolVerdict:
    return ToolVerdict(tool=tool, accepted=False, accuracy=None, reasons=(reason,), detail=detail)
