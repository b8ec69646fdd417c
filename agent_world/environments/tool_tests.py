"""Runs the unit tests of tools in the sandbox, each twice, and says what came back (method.md 3: ``C_f``).

In a test's arguments and expected values ``{"$ref": "before[0].booking_id"}`` stands for what an earlier call of the
test gave, and in expected values ``{"$minted": "BK"}`` for any id that starts so and was not made before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import Call, Environment, Json, Tool, ToolTest
from agent_world.environments.session import Session, open_session
from agent_world.identity import seed_of
from agent_world.rollouts.model import Observation
from agent_world.sandbox import Sandbox

TestReason = Literal[
    "wrong_value",  # it gave something else
    "not_refused",  # it gave a result where it had to refuse
    "wrong_refusal",  # it refused, with another code or where it had to give a result
    "error",  # it raised, hung or died
    "scene_failed",  # a call before it did not come off
    "broken_output",  # the result breaks the output schema
    "unstable",  # two runs differ
    "corrupt_state",  # its calls left a state that cannot be read
]

_TOLERANCE = 1e-6
_REFERENCE = re.compile(r"before\[(\d+)\]\.(.+)")
_SEED = seed_of("tool tests")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """How one test went. `seen` is what came back the first time; `reason` is set exactly when it did not pass."""

    __test__ = False

    test: ToolTest
    passed: bool
    seen: Json
    reason: TestReason | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of one test: the answers of the calls that set the scene, and of the call itself.

    `corrupt`: the state that they left cannot be read.
    """

    scene: tuple[Observation, ...]
    answer: Observation
    corrupt: bool = False


def run_tests(environment: Environment, tests: Sequence[ToolTest], sandbox: Sandbox) -> list[TestResult]:
    """Run every test twice and judge it, in the order given.

    A test whose calls only read shares a session with others of its kind, the second time in reverse order, so that
    what one call leaves behind in a module shows in another. Any other test has a fresh session each time.
    """
    tools = {tool.name: tool for tool in environment.tools}
    alone = [test for test in tests if not _reads_only(test, tools)]
    together = [test for test in tests if _reads_only(test, tools)]
    runs: dict[int, list[_Run]] = {id(test): [] for test in tests}
    for order in (together, together[::-1]):
        for test, run in _in_one_session(environment, order, sandbox):
            runs[id(test)].append(run)
    for test in alone:
        for _ in range(2):
            with open_session(environment, _SEED, sandbox) as session:
                runs[id(test)].append(replace(_run(session, test), corrupt=_is_corrupt(session)))
    return [_judge(test, *runs[id(test)], tools) for test in tests]


def _reads_only(test: ToolTest, tools: Mapping[str, Tool]) -> bool:
    return all(call.tool in tools and not tools[call.tool].writes for call in (*test.before, test.call))


def _in_one_session(
    environment: Environment, tests: Iterable[ToolTest], sandbox: Sandbox
) -> Iterable[tuple[ToolTest, _Run]]:
    """Runs of tests one after the other; a session in which a tool failed is not used again."""
    session: Session | None = None
    try:
        for test in tests:
            session = session or open_session(environment, _SEED, sandbox)
            run = _run(session, test)
            yield test, run
            if any(observation.status == "error" for observation in (*run.scene, run.answer)):
                session.close()
                session = None
    finally:
        if session is not None:
            session.close()


def _run(session: Session, test: ToolTest) -> _Run:
    scene: list[Observation] = []
    for call in test.before:
        scene.append(_call(session, call, scene))
    return _Run(tuple(scene), _call(session, test.call, scene))


def _is_corrupt(session: Session) -> bool:
    try:
        session.digest()
    except CorruptStateError:
        return True
    return False


def _call(session: Session, call: Call, scene: Sequence[Observation]) -> Observation:
    return session.call(call.tool, {name: _resolved(value, scene) for name, value in call.arguments.items()})


def _resolved(value: Json, scene: Sequence[Observation]) -> Json:
    """`value` with a reference to an earlier call replaced by what that call gave; None where it gave nothing."""
    if not (isinstance(value, dict) and set(value) == {"$ref"}):
        return value
    match = _REFERENCE.fullmatch(str(value["$ref"]))
    if match is None or int(match[1]) >= len(scene):
        return None
    found: Any = scene[int(match[1])].value
    for part in match[2].split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _judge(test: ToolTest, first: _Run, second: _Run, tools: Mapping[str, Tool]) -> TestResult:
    reason = _reason(test, first, tools)
    if (first.scene, first.answer) != (second.scene, second.answer):
        reason = "unstable"
    if first.corrupt or second.corrupt:
        reason = "corrupt_state"
    return TestResult(test=test, passed=reason is None, seen=first.answer.value, reason=reason)


def _reason(test: ToolTest, run: _Run, tools: Mapping[str, Tool]) -> TestReason | None:
    answer = run.answer
    if any(observation.status != "ok" for observation in run.scene) and not _scene_may_fail(test, run):
        return "scene_failed"
    if answer.status == "error":
        return "error"
    if test.refusal is not None:
        if answer.status == "ok":
            return "not_refused"
        return None if answer.value["error"]["code"] == test.refusal else "wrong_refusal"
    if answer.status != "ok":
        return "wrong_refusal"
    if not _valid(answer.value, tools[test.call.tool]):
        return "broken_output"
    made = {value for observation in run.scene for value in _texts(observation.value)}
    return None if _equal(test.expect, answer.value, run.scene, made) else "wrong_value"


def _scene_may_fail(test: ToolTest, run: _Run) -> bool:
    """A refused call may be part of the scene where the test does not build on what it gave."""
    broken = [i for i, observation in enumerate(run.scene) if observation.status != "ok"]
    return all(
        run.scene[i].status == "refused" and f"before[{i}]." not in repr((test.call, test.expect)) for i in broken
    )


def _valid(value: Json, tool: Tool) -> bool:
    from agent_world.environments.arguments import complaint

    return complaint(tool.output_schema, value) is None


def _equal(wanted: Json, seen: Json, scene: Sequence[Observation], made: set[str]) -> bool:
    if isinstance(wanted, dict) and set(wanted) == {"$ref"}:
        return seen is not None and _resolved(wanted, scene) == seen
    if isinstance(wanted, dict) and set(wanted) == {"$minted"}:
        return isinstance(seen, str) and seen.startswith(wanted["$minted"]) and seen not in made
    if isinstance(wanted, dict):
        return (
            isinstance(seen, dict)
            and wanted.keys() == seen.keys()
            and all(_equal(item, seen[key], scene, made) for key, item in wanted.items())
        )
    if isinstance(wanted, list):
        return (
            isinstance(seen, list)
            and len(wanted) == len(seen)
            and all(_equal(one, other, scene, made) for one, other in zip(wanted, seen, strict=True))
        )
    if isinstance(wanted, bool) or isinstance(seen, bool) or wanted is None or isinstance(wanted, str):
        return type(wanted) is type(seen) and wanted == seen
    return isinstance(seen, (int, float)) and abs(wanted - seen) <= _TOLERANCE


def _texts(value: Json) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
