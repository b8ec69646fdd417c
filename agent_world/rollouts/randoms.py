"""The random agent of the guessing gate (design.md 7): schema-valid calls, then an answer made of what it saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from agent_world.environments.model import Json, PublicTool
from agent_world.identity import rng as seeded
from agent_world.rollouts.arguments import draw_arguments, draw_value, entities, leaves, numbers, type_of
from agent_world.rollouts.model import Observation, Step, Turn
from agent_world.rollouts.policies import Play, Scripted, answer_step

MOST_CALLS = 6
_LOOKUP_TRIES = 4
_MOST_ENTITIES = 4
_KNOWING = 0.5
_PYTHON = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


class RandomAgent(Scripted):
    """Knows nothing but the turn. With `informed` it first looks up every entity that the instruction names.

    Arguments come from the instruction (entities, numbers), the schemas (enum values) and earlier observations, every
    other time from a field of the parameter's name where one was seen; the answer comes from what was seen, every other
    time from the last thing seen. All choices are seeded by the episode's seed.
    """

    def __init__(self, *, informed: bool) -> None:
        super().__init__()
        self.informed = informed
        self.name = "random-informed" if informed else "random"

    def play(self, turn: Turn) -> Play:
        """Look-ups when informed, up to six random calls, an answer."""
        rng = seeded("random-agent", self.name, turn.instruction, turn.seed)
        seen = _Seen(turn.instruction)
        if self.informed:
            for entity in entities(turn.instruction)[:_MOST_ENTITIES]:
                yield from self._look_up(entity, turn.tools, seen, rng)
        for _ in range(rng.randint(0 if self.informed else 1, MOST_CALLS)):
            tool = rng.choice(turn.tools)
            seen.add((yield _call(tool, draw_arguments(tool.input_schema, rng, seen.pick))))
        yield answer_step(
            {name: _guess(name, schema, rng, seen) for name, schema in turn.answer_schema["properties"].items()}
        )

    def _look_up(self, entity: str, tools: Sequence[PublicTool], seen: _Seen, rng: Random) -> Play:
        """Give the entity to reading tools that take a text, until one finds something."""
        for tool, parameter in _text_parameters(tools, rng)[:_LOOKUP_TRIES]:
            arguments = {**draw_arguments(tool.input_schema, rng, seen.pick), parameter: entity}
            observation = yield _call(tool, arguments)
            if seen.add(observation):
                return


class _Seen:
    """What the agent has read so far, by JSON type."""

    def __init__(self, instruction: str) -> None:
        self.strings: list[str] = list(entities(instruction))
        self.numbers: list[int | float] = list(numbers(instruction))
        self.observed: list[Json] = []
        self.last: list[Json] = []
        self.named: dict[str, list[Json]] = {}

    def add(self, observation: Observation) -> bool:
        """Take in an observation; whether it brought any value."""
        if observation.status != "ok":
            return False
        pairs = [(key, value) for key, value in leaves(observation.value) if value is not None]
        for key, value in pairs:
            self.named.setdefault(key, []).append(value)
        found = [value for _, value in pairs]
        self.last = found or self.last
        self.observed += found
        self.strings += [value for value in found if isinstance(value, str)]
        self.numbers += [value for value in found if isinstance(value, int | float) and not isinstance(value, bool)]
        return any(isinstance(value, str) for value in found)

    def pick(self, parameter: str, kind: str, rng: Random) -> Json:
        """Any value of that type read so far, half the time one that was seen under the parameter's own name."""
        fitting = [value for value in self.named.get(parameter, ()) if _is(value, _PYTHON[kind])]
        if fitting and rng.random() < _KNOWING:
            return rng.choice(fitting)
        pool: Sequence[Json] = self.strings if kind == "string" else self.numbers
        return rng.choice(pool) if pool else None


def _guess(name: str, schema: Mapping[str, Json], rng: Random, seen: _Seen) -> Json:
    """A value for an answer field: one that was observed where one of its type was, else any that fits."""
    wanted = _PYTHON.get(type_of(schema))
    if wanted is not None and "enum" not in schema:
        source = seen.last if rng.random() < _KNOWING else seen.observed
        fitting = [value for value in source if _is(value, wanted)] or [v for v in seen.observed if _is(v, wanted)]
        if fitting:
            return rng.choice(fitting)
    return draw_value(name, schema, rng, seen.pick)


def _is(value: Json, wanted: type | tuple[type, ...]) -> bool:
    return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))


def _text_parameters(tools: Sequence[PublicTool], rng: Random) -> list[tuple[PublicTool, str]]:
    found = [
        (tool, name)
        for tool in tools
        if not tool.writes
        for name, schema in tool.input_schema.get("properties", {}).items()
        if type_of(schema) == "string" and "enum" not in schema
    ]
    rng.shuffle(found)
    return found


def _call(tool: PublicTool, arguments: Mapping[str, Json]) -> Step:
    return Step(kind="tool", tool=tool.name, arguments=arguments)
