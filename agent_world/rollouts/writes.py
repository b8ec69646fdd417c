"""Calls that change something: values drawn from the database by what each parameter means."""

from __future__ import annotations

from random import Random

from agent_world.environments.model import Call, Environment, Json, Tool
from agent_world.identity import rng as seeded
from agent_world.rollouts.arguments import draw_arguments, draw_value, type_of
from agent_world.rollouts.canonical import canonical
from agent_world.rollouts.vocabulary import Vocabulary


def write_calls(environment: Environment, seed: int, count: int) -> list[Call]:
    """`count` calls of writing tools, each tool in turn; business rules may still refuse some of them."""
    rng = seeded("write-calls", environment.version, seed)
    tools = [tool for tool in environment.tools if tool.writes]
    rng.shuffle(tools)
    return [draw_call(environment, tools[index % len(tools)], rng) for index in range(count)] if tools else []


def draw_call(environment: Environment, tool: Tool, rng: Random) -> Call:
    """A schema-valid call of `tool` with values that exist in its columns."""
    vocabulary = Vocabulary.of(environment)

    def pick(parameter: str, kind: str, rng: Random) -> Json:
        meaning = tool.inputs.get(parameter)
        domain = vocabulary.domains.get((meaning.table or "", meaning.column or "")) if meaning else None
        return rng.choice(domain.values) if domain and domain.values else "note" if kind == "string" else None

    return Call(tool=tool.name, arguments=draw_arguments(tool.input_schema, rng, pick))


def other_argument(environment: Environment, call: Call, rng: Random) -> Call:
    """`call` with one argument exchanged for another value of the same column or type."""
    tool = environment.tool(call.tool)
    names = sorted(call.arguments)
    rng.shuffle(names)
    for name in names:
        schema = tool.input_schema["properties"].get(name, {})
        for _ in range(8):
            drawn = draw_call(environment, tool, rng).arguments.get(name)
            value = draw_value(name, schema, rng, lambda *_: None) if drawn is None else drawn
            if value and canonical(value, schema) != canonical(call.arguments[name], schema):
                return Call(tool=call.tool, arguments={**call.arguments, name: value})
        if type_of(schema) == "string" and "enum" not in schema:
            return Call(tool=call.tool, arguments={**call.arguments, name: f"{call.arguments[name]}x"})
    return call


def other_tool(environment: Environment, call: Call, avoid: set[str], rng: Random) -> Call:
    """A call of another reading tool in the place of `call`, one outside `avoid` when there is one."""
    others = [tool for tool in environment.tools if tool.name != call.tool and not tool.writes]
    fresh = [tool for tool in others if tool.name not in avoid]
    candidates = fresh or others or [tool for tool in environment.tools if tool.name != call.tool]
    return draw_call(environment, rng.choice(candidates), rng) if candidates else call
