"""Ground truth comes only from here: plans and solutions run against the real tools in the sandbox (method.md 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import Call, Environment, Json, Tool
from agent_world.environments.session import open_session
from agent_world.environments.state import EnvironmentState, StateDiff, normalised
from agent_world.identity import VersionId, canonical_json
from agent_world.rollouts.arguments import values_in
from agent_world.rollouts.model import Observation
from agent_world.sandbox import Sandbox

_SOLVE = "solve"
_MOST_CALLS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """An executed plan: one observation a call, the state it ended in, and what that differs by, also normalised."""

    calls: tuple[Call, ...]
    observations: tuple[Observation, ...]
    final: EnvironmentState
    difference: StateDiff
    change: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """An executed solution: the answer it returned and the trace of the calls it made."""

    answer: Mapping[str, Json]
    trace: Trace


def passed_on(trace: Trace) -> float:
    """The share of the arguments of `trace` that an earlier result held: the others come from the task or from `D`."""
    seen: set[str] = set()
    found = []
    for call, observation in zip(trace.calls, trace.observations, strict=True):
        found += [canonical_json(value) in seen for value in call.arguments.values()]
        seen |= {canonical_json(value) for value in values_in(observation.value)}
    return round(sum(found) / len(found), 3) if found else 0.0


def run_plan(environment: Environment, calls: Sequence[Call], seed: int, sandbox: Sandbox | None = None) -> Trace:
    """Make `calls` in a fresh session, one after the other.

    Raises:
        CorruptStateError: they left a state that cannot be read.
    """
    with open_session(environment, seed, sandbox) as session:
        observations = tuple(session.call(call.tool, call.arguments) for call in calls)
        final, difference = session.state(), session.diff()
    change = normalised(difference, environment.database)
    return Trace(calls=tuple(calls), observations=observations, final=final, difference=difference, change=change)


def run_solution(environment: Environment, solution: str, seed: int, sandbox: Sandbox | None = None) -> Solved | str:
    """Execute ``solve(call)`` in a session; the reason as text when it raised or cannot be trusted.

    The solution runs inside the sandbox beside the tools, so that each of its calls costs no round trip. What it
    claims to have called is then made again, call by call, through the session's own interface: other observations
    there mean that the solution did something else than calling tools.
    """
    harness = _harness(environment, solution)
    with open_session(harness, seed, sandbox) as session:
        observation = session.call(_SOLVE, {})
    if observation.status != "ok":
        return f"{observation.value['error']['code']}: {observation.value['error']['message']}"
    calls = [Call(tool=name, arguments=arguments) for name, arguments, _ in observation.value["calls"]]
    try:
        trace = run_plan(environment, calls, seed, sandbox)
    except CorruptStateError as error:
        return str(error)
    for made, (name, _, result) in zip(trace.observations, observation.value["calls"], strict=True):
        if made.status not in ("ok", "refused") or canonical_json(made.value) != canonical_json(result):
            return f"{name} answered the solution otherwise than an agent: {made.value!r:.200}"
    return Solved(answer=observation.value["answer"], trace=trace)


def _harness(environment: Environment, solution: str) -> Environment:
    """`environment` with one more tool, which loads all the others and runs the solution over them."""
    tools = {tool.name: [tool.source, tool.writes] for tool in environment.tools}
    source = _HARNESS.format(tools=json.dumps(tools), solution=json.dumps(solution), most_calls=_MOST_CALLS)
    empty = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    solve = Tool(
        tool_id=_SOLVE, name=_SOLVE, description="", input_schema=empty, output_schema={}, writes=True, source=source,
        pattern=_SOLVE, tables=(),
    )  # fmt: skip
    return replace(environment, tools=(solve,), tool_versions=(VersionId(_SOLVE),))


_HARNESS = '''import json

from toolkit import Refused
from values import plain

TOOLS = json.loads({tools!r})
SOLUTION = json.loads({solution!r})


def solve(world) -> dict:
    """Run the solution over the other tools, each call in a transaction of its own, as an agent's calls are."""
    loaded, calls = {{}}, []

    def call(name, arguments):
        if len(calls) == {most_calls}:
            raise RuntimeError("the solution makes too many calls")
        source, writes = TOOLS[name]
        if name not in loaded:
            module = {{}}
            exec(compile(source, name, "exec"), module)
            loaded[name] = module[name]
        try:
            with world.transaction(writes=writes):
                result = loaded[name](world, **arguments)
        except Refused as refusal:
            result = {{"error": {{"code": refusal.code, "message": refusal.message}}}}
        result = plain(result)
        calls.append([name, arguments, result])
        return plain(result)

    module = {{}}
    exec(compile(SOLUTION, "solution", "exec"), module)
    return {{"answer": module["solve"](call), "calls": calls}}
'''
