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
from trainers.demonstration import Demonstration

_NUMBER = re.compile(r"_\d+$")


def spliced(one: Demonstration, other: Demonstration) -> Demonstration | None:
    """`one`, then `other`, but one that writes comes last: what it changes, the other one has not seen.

    None when both write, or an answer has no fields. Ids that a policy wrote are not kept: in another context its
    references stand for other things.
    """
    if _writes(one):
        one, other = other, one
    (*steps, (answer, _)), (*more, (last, _)) = one.steps, other.steps
    if not isinstance(answer.answer, Mapping) or not isinstance(last.answer, Mapping) or _writes(one):
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


def _writes(shown: Demonstration) -> bool:
    writing = {tool.name for tool in shown.turn.tools if tool.writes}
    return any(step.tool in writing for step, _ in shown.steps)


def _free(field: str, taken: Mapping[str, Json]) -> str:
    """`field`, numbered as answer fields of one name are, when it is taken."""
    name, number = field, 1
    while name in taken:
        number += 1
        name = f"{field}_{number}"
    return name
