"""Two demonstrations of one environment as one: what makes a small model learn parts instead of whole instructions.

Instructions ask for several things in any combination, far more combinations than there are demonstrations. One asks
for this and that when it is the text of two instructions, one after the other; the steps are those of both, the answer
has the fields of both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step, Turn
from trainers.demonstration import Demonstration

_NUMBER = re.compile(r"_\d+$")


def spliced(one: Demonstration, other: Demonstration) -> Demonstration | None:
    """`one`, then `other`; None when an answer has no fields, or both write and so would have seen another state.

    Ids that a policy wrote are not kept: in another context its references stand for other things.
    """
    (*steps, (answer, _)), (*more, (last, _)) = one.steps, other.steps
    if not isinstance(answer.answer, Mapping) or not isinstance(last.answer, Mapping):
        return None
    if _writes(one.turn, steps) and _writes(other.turn, more):
        return None
    fields: dict[str, Json] = dict(one.turn.answer_schema.get("properties", {}))
    values = dict(answer.answer)
    asked = other.turn.answer_schema.get("properties", {})
    for field, schema in asked.items():
        stem = _NUMBER.sub("", field)
        name = _free(stem if stem in asked else field, fields)
        fields[name] = schema
        if field in last.answer:
            values[name] = last.answer[field]
    schema = {**one.turn.answer_schema, "properties": fields, "required": sorted(fields)}
    turn = replace(one.turn, instruction=f"{one.turn.instruction} {other.turn.instruction}", answer_schema=schema)
    together = (*steps, *more, (replace(answer, answer=values), None))
    return Demonstration(turn, tuple((replace(step, tokens=None), observation) for step, observation in together))


def _writes(turn: Turn, steps: list[tuple[Step, Observation | None]]) -> bool:
    writing = {tool.name for tool in turn.tools if tool.writes}
    return any(step.tool in writing for step, _ in steps)


def _free(field: str, taken: Mapping[str, Json]) -> str:
    """`field`, numbered as answer fields of one name are, when it is taken."""
    name, number = field, 1
    while name in taken:
        number += 1
        name = f"{field}_{number}"
    return name
