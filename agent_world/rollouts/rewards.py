"""Reward of a finished episode: typed criteria in trusted code, `V_code` in a sandbox of its own (method.md 6).

The published answer schema is checked first, then every typed criterion of the task, then, for a program task whose
criteria all hold, its verifier. Everything is judged on state that was read from outside the agent's session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import Database, Json
from agent_world.environments.state import EnvironmentState, diff, normalised
from agent_world.errors import AgentWorldError
from agent_world.identity import canonical_json
from agent_world.rollouts.canonical import Schema, aligned, canonical, misfits, number_in
from agent_world.rollouts.model import Outcome
from agent_world.rollouts.verifier import Verification, verify
from agent_world.tasks.model import Criterion, Task

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox

ANSWER_SCHEMA = "answer_schema"
"""The name under which an answer of the wrong shape fails."""

CORRUPT_STATE = "corrupt_state"
"""The name under which an episode fails in which a tool broke the state: the tool's doing, never the harness's."""


class UnjudgeableTaskError(AgentWorldError):
    """A task that would reward everything: it has no criterion, or a program task has no verifier."""

    def __init__(self, task_id: str, missing: str) -> None:
        super().__init__(task_id, missing)
        self.task_id, self.missing = task_id, missing

    def __str__(self) -> str:
        return f"task {self.task_id} has no {self.missing}, so every answer would pass; synthesise it again"


class Judge(Protocol):
    """Judges rubric items of kind ``free_form`` (design.md 6); everything typed is judged by code."""

    def holds(self, criterion: Criterion, task: Task, answer: Mapping[str, Json]) -> bool:
        """Whether `criterion`, in plain words, holds of `answer`."""
        ...


def check_judgeable(task: Task) -> None:
    """Refuse a task that nothing can fail.

    Raises:
        UnjudgeableTaskError: an empty rubric on a graph task, or a program task without verifier.
    """
    if task.kind == "graph" and not task.rubric:
        raise UnjudgeableTaskError(task.task_id, "rubric")
    if task.kind == "program" and not task.verifier:
        raise UnjudgeableTaskError(task.task_id, "verifier")


def judge_all(
    task: Task,
    answers: Sequence[Json],
    initial: EnvironmentState,
    final: EnvironmentState,
    database: Database,
    sandbox: Sandbox | None = None,
    *,
    free_form: Judge | None = None,
) -> list[Outcome]:
    """One outcome for each of several answers that were given in the same final state.

    The state is compared once and the verifier started once; each answer gets a fresh module and fresh connections. A
    final state that cannot be read, where the initial one can, fails (`CORRUPT_STATE`).

    Raises:
        UnjudgeableTaskError: the task has nothing to judge by.
    """
    check_judgeable(task)
    try:
        change = state_change(initial, final, database)
        outcomes = [_typed_outcome(task, answer, change, free_form) for answer in answers]
        if task.kind == "program":
            open_ = [index for index, outcome in enumerate(outcomes) if outcome.status == "pass"]
            candidates = [aligned(answers[index], task.answer, task.answer_schema) for index in open_]
            verified = verify(task, candidates, initial, final, change, sandbox) if candidates else []
            for index, verification in zip(open_, verified, strict=True):
                outcomes[index] = _verified_outcome(verification)
    except CorruptStateError as error:
        return [corrupted(initial, error)] * len(answers)
    except Exception as error:
        # Whatever the agent did, a judge that breaks is our fault and no reward.
        return [Outcome(status="infra_error", detail=f"judge: {type(error).__name__}: {error}")] * len(answers)
    return outcomes


def corrupted(initial: EnvironmentState, error: CorruptStateError) -> Outcome:
    """The outcome when a final state cannot be read: a fail, unless that is true of the initial one already."""
    try:
        initial.check()
    except CorruptStateError as at_first:
        return Outcome(status="infra_error", detail=f"the environment: {type(at_first).__name__}: {at_first}")
    return Outcome(status="fail", failed=(CORRUPT_STATE,), detail=f"a tool broke the state: {error.what}")


def checked(task: Task, outcome: Outcome, initial: EnvironmentState, final: EnvironmentState) -> Outcome:
    """The outcome, now that the final state is looked at whole: nothing passes in a broken one, whoever looked at it.

    What the typed criteria failed stands: they ask for the rows alone.
    """
    if outcome.failed and {*outcome.failed} <= {ANSWER_SCHEMA, *(criterion.name for criterion in task.rubric)}:
        return outcome
    try:
        final.check()
    except CorruptStateError as error:
        return corrupted(initial, error)
    return outcome


def state_change(initial: EnvironmentState, final: EnvironmentState, database: Database) -> dict[str, Any]:
    """The normalised difference of two states; empty when nothing changed."""
    return normalised(diff(initial, final, database.tables), database)


def criterion_holds(
    criterion: Criterion, schema: Schema, answer: Mapping[str, Json], change: Mapping[str, Any]
) -> bool:
    """Whether one typed criterion holds of an answer and a state change.

    Raises:
        ValueError: the criterion is not of a typed kind.
    """
    if criterion.kind == "state_equals":
        return canonical_json(change) == canonical_json(criterion.expected)
    name = criterion.field
    if name is None or name not in answer:
        return False
    value, declared = answer[name], schema["properties"].get(name, {})
    match criterion.kind:
        case "field_present":
            return value not in (None, "", [], {})
        case "field_equals":
            return canonical(value, declared) == canonical(criterion.expected, declared)
        case "numeric_tolerance":
            number, expected = number_in(value), number_in(criterion.expected)
            return number is not None and expected is not None and abs(number - expected) <= criterion.tolerance
        case "set_equals":
            as_set = {**declared, "uniqueItems": True}
            return isinstance(value, list) and canonical(value, as_set) == canonical(criterion.expected, as_set)
        case "order":
            in_order = {**declared, "uniqueItems": False}
            return isinstance(value, list) and canonical(value, in_order) == canonical(criterion.expected, in_order)
    raise ValueError(f"a criterion of kind {criterion.kind} is not judged by code")


def _typed_outcome(task: Task, answer: Json, change: Mapping[str, Any], free_form: Judge | None) -> Outcome:
    if wrong := misfits(answer, task.answer_schema):
        return Outcome(status="fail", failed=(ANSWER_SCHEMA,), detail="; ".join(wrong))
    typed = [criterion for criterion in task.rubric if criterion.kind != "free_form"]
    failed = [each.name for each in typed if not criterion_holds(each, task.answer_schema, answer, change)]
    if not failed:
        asked = [criterion for criterion in task.rubric if criterion.kind == "free_form"]
        failed = [each.name for each in asked if not _judged(each, task, answer, free_form)]
    return Outcome(status="fail", failed=tuple(failed)) if failed else Outcome(status="pass")


def _judged(criterion: Criterion, task: Task, answer: Mapping[str, Json], free_form: Judge | None) -> bool:
    if free_form is None:
        raise UnjudgeableTaskError(task.task_id, f"judge for the free-form criterion {criterion.name}")
    return free_form.holds(criterion, task, answer)


def _verified_outcome(verification: Verification) -> Outcome:
    if verification.error is not None:
        return Outcome(status="infra_error", detail=f"verifier: {verification.error}")
    return Outcome(status="fail" if verification.failed else "pass", failed=verification.failed)
