"""Answers that must not pass: empty, most likely, and wrong in one field (design.md 7)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from agent_world.environments.model import Environment, Json
from agent_world.identity import rng as seeded
from agent_world.rollouts.arguments import type_of
from agent_world.rollouts.canonical import canonical
from agent_world.rollouts.vocabulary import Domain, Vocabulary
from agent_world.tasks.model import Task

Change = Literal["nearby", "sibling", "flipped", "filled", "emptied", "dropped", "swapped", "altered"]
_EMPTY: Mapping[str, Json] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
_TYPICAL: Mapping[str, Json] = {"string": "", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongAnswer:
    """The gold answer with one field changed in one way."""

    field: str
    change: Change
    answer: Mapping[str, Json]


def empty_answer(schema: Mapping[str, Any]) -> dict[str, Json]:
    """The emptiest answer that `schema` allows: no text, zero, no, none."""
    return {name: _least(declared, _EMPTY) for name, declared in schema["properties"].items()}


def likely_answer(task: Task, environment: Environment) -> dict[str, Json]:
    """The most likely value of each field: the mode of the column it speaks of, else a typical value of its type."""
    vocabulary = Vocabulary.of(environment)
    return {
        name: _likely(vocabulary, name, declared, task.answer.get(name))
        for name, declared in task.answer_schema["properties"].items()
    }


def wrong_answers(task: Task, environment: Environment, seed: int) -> list[WrongAnswer]:
    """The gold answer with every field changed in turn, each different from gold in canonical form.

    A number moves to its neighbour (out of the criterion's tolerance), a text becomes another value of its column, a
    list loses an element, has two swapped where order counts, and one altered.
    """
    vocabulary = Vocabulary.of(environment)
    rng = seeded("wrong-answers", task.task_id, seed)
    found = []
    for name, declared in task.answer_schema["properties"].items():
        gold = task.answer.get(name)
        schema = {**declared, "uniqueItems": True} if _is_set(task, name) else declared
        domain = vocabulary.domain_of(name, schema, gold[0] if isinstance(gold, list) and gold else gold)
        for change, value in _changes(gold, schema, domain, _tolerance(task, name), rng):
            if canonical(value, schema) != canonical(gold, schema):
                found.append(WrongAnswer(field=name, change=change, answer={**task.answer, name: value}))
    return found


def _changes(
    gold: Json, schema: Mapping[str, Any], domain: Domain | None, tolerance: float, rng: Random
) -> Iterator[tuple[Change, Json]]:
    if isinstance(gold, list):
        yield from _list_changes(gold, schema, domain, tolerance, rng)
    elif isinstance(gold, Mapping):
        for name, value in gold.items():
            inner = schema.get("properties", {}).get(name, {})
            for change, other in _changes(value, inner, None, tolerance, rng):
                yield change, {**gold, name: other}
    else:
        yield _other(gold, schema, domain, tolerance, rng)
        if "null" in _declared_types(schema) and gold is not None:
            yield "emptied", None


def _list_changes(
    gold: Sequence[Json], schema: Mapping[str, Any], domain: Domain | None, tolerance: float, rng: Random
) -> Iterator[tuple[Change, Json]]:
    items = schema.get("items", {})
    if not gold:
        yield "filled", [domain.values[0] if domain else _least(items, _TYPICAL)]
        return
    position = rng.randrange(len(gold))
    yield "dropped", [*gold[:position], *gold[position + 1 :]]
    for change, other in _changes(gold[position], items, domain, tolerance, rng):
        yield ("altered" if change != "emptied" else change), [*gold[:position], other, *gold[position + 1 :]]
    if len(gold) > 1 and not schema.get("uniqueItems"):
        first = rng.randrange(len(gold) - 1)
        yield "swapped", [*gold[:first], gold[first + 1], gold[first], *gold[first + 2 :]]


def _other(
    gold: Json, schema: Mapping[str, Any], domain: Domain | None, tolerance: float, rng: Random
) -> tuple[Change, Json]:
    """Another value of the same type."""
    form = canonical(gold, schema)
    if "enum" in schema:
        rest = [choice for choice in schema["enum"] if canonical(choice, schema) != form]
        return "sibling", rng.choice(rest) if rest else f"not {gold}"
    if gold is None:
        return "filled", domain.values[0] if domain else _least(schema, _TYPICAL)
    if isinstance(gold, bool):
        return "flipped", not gold
    if isinstance(gold, int):
        return "nearby", gold + rng.choice((-1, 1)) * (math.floor(tolerance) + 1)
    if isinstance(gold, float):
        step = 2 * tolerance + max(0.01 * abs(gold), 0.05)
        return "nearby", round(gold + rng.choice((-1, 1)) * step, 6)
    siblings = [value for value in domain.values if canonical(value, schema) != form] if domain else []
    return "sibling", str(rng.choice(siblings)) if siblings else f"not {gold}"


def _likely(vocabulary: Vocabulary, name: str, schema: Mapping[str, Any], gold: Json) -> Json:
    if "enum" in schema:
        return schema["enum"][0]
    kind = type_of(schema)
    if kind == "array":
        element = gold[0] if isinstance(gold, list) and gold else None
        return [_likely(vocabulary, name, schema.get("items", {}), element)]
    domain = vocabulary.domain_of(name, schema, gold)
    mode = domain.values[0] if domain else None
    if kind == "boolean" and mode in (0, 1):
        return bool(mode)
    fits = {"string": isinstance(mode, str), "integer": isinstance(mode, int), "number": isinstance(mode, int | float)}
    return mode if fits.get(kind) else _least(schema, _TYPICAL)


def _least(schema: Mapping[str, Any], values: Mapping[str, Json]) -> Json:
    if "enum" in schema:
        return schema["enum"][0]
    if "null" in _declared_types(schema) and values is _EMPTY:
        return None
    return values.get(type_of(schema))


def _declared_types(schema: Mapping[str, Any]) -> Sequence[str]:
    declared = schema.get("type", ())
    return (declared,) if isinstance(declared, str) else tuple(declared)


def _is_set(task: Task, name: str) -> bool:
    return any(criterion.kind == "set_equals" and criterion.field == name for criterion in task.rubric)


def _tolerance(task: Task, name: str) -> float:
    return max((criterion.tolerance for criterion in task.rubric if criterion.field == name), default=0.0)
