"""The gates that need no session: rubric, leak, evidence (design.md 7)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from agent_world.environments.model import Environment, Json
from agent_world.identity import canonical_json
from agent_world.rollouts.canonical import misfits
from agent_world.tasks.leak import leaks
from agent_world.tasks.model import Task
from agent_world.tasks.verdicts import GateVerdict

SMALL_COUNT = 20
FEWEST_GUESSES = 100
_OPEN = 1_000
_CONTENT = frozenset({"field_equals", "numeric_tolerance", "set_equals", "order", "free_form"})


def rubric_gate(task: Task) -> GateVerdict:
    """The task can fail: criteria over its fields and its final state, or a verifier.

    A program task's verifier may judge what its criteria leave out; the gates that run it find out whether it does.
    """
    if (task.kind == "graph" and not task.rubric) or (task.kind == "program" and not task.verifier):
        return GateVerdict(gate="rubric", accepted=False, reason="no_rubric")
    fields = set(task.answer_schema["properties"])
    unknown = sorted({each.field for each in task.rubric if each.field is not None} - fields)
    if unknown:
        return GateVerdict(gate="rubric", accepted=False, reason="unknown_field", evidence={"fields": unknown})
    if task.kind == "graph":
        unjudged = sorted(fields - {each.field for each in task.rubric if each.kind in _CONTENT})
        if unjudged:
            return GateVerdict(gate="rubric", accepted=False, reason="field_not_judged", evidence={"fields": unjudged})
        if not any(each.kind == "state_equals" for each in task.rubric):
            return GateVerdict(gate="rubric", accepted=False, reason="state_not_judged")
    return GateVerdict(gate="rubric", accepted=True, evidence={"criteria": [each.kind for each in task.rubric]})


def leak_gate(task: Task, environment: Environment) -> GateVerdict:
    """No public text names a tool or spells an identifier of two or more words."""
    found = leaks(task, environment)
    if not found:
        return GateVerdict(gate="leak", accepted=True)
    named = [{"where": leak.where, "identifier": leak.identifier, "kind": leak.kind} for leak in found]
    reason = "tool_name" if any(leak.kind == "tool" for leak in found) else "identifier"
    return GateVerdict(gate="leak", accepted=False, reason=reason, evidence={"leaks": named})


def evidence_gate(task: Task) -> GateVerdict:
    """The gold answer has the published shape, and there is more to get right than a yes/no or a small count.

    A state change is evidence of its own. Otherwise the answer must leave at least 100 guesses, where a truth value
    counts 2, an integer up to 20 counts 21, a choice its number of values, and anything else enough.
    """
    try:
        canonical_json(task.answer)
    except (ValueError, TypeError) as error:
        return GateVerdict(gate="evidence", accepted=False, reason="answer_not_json", evidence={"why": str(error)})
    wrong = misfits(task.answer, task.answer_schema)
    if wrong:
        return GateVerdict(gate="evidence", accepted=False, reason="answer_misfits", evidence={"why": wrong})
    fields = task.answer_schema["properties"]
    guesses = math.prod(_guesses(task.answer.get(name), schema) for name, schema in fields.items())
    evidence = {"guesses": min(guesses, _OPEN), "writes": task.writes}
    if guesses < FEWEST_GUESSES and not task.writes:
        return GateVerdict(gate="evidence", accepted=False, reason="guessable_answer", evidence=evidence)
    return GateVerdict(gate="evidence", accepted=True, evidence=evidence)


def _guesses(value: Json, schema: Mapping[str, Any]) -> int:
    """How many values one would have to try, up to 1,000."""
    if isinstance(value, list):
        return min(math.prod(_guesses(item, schema.get("items", {})) for item in value) + len(value), _OPEN)
    if isinstance(value, Mapping):
        inner = schema.get("properties", {})
        return min(math.prod(_guesses(item, inner.get(key, {})) for key, item in value.items()), _OPEN)
    if "enum" in schema:
        return len(schema["enum"])
    if value is None or isinstance(value, bool):
        return 2
    if isinstance(value, int) and abs(value) <= SMALL_COUNT:
        return SMALL_COUNT + 1
    return _OPEN
