"""What went wrong in one failed episode, told by code from its trace and the gold plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent_world.arena.model import FailureLabel
from agent_world.environments.model import Call
from agent_world.identity import canonical_json
from agent_world.rollouts.model import Trajectory
from agent_world.rollouts.rewards import CORRUPT_STATE
from agent_world.tasks.model import Task

_REPEATS_OF_A_LOOP = 3
_STATE_CRITERION = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failed episode: its label and where it left the gold plan.

    `missed` is the first gold call that was never made as planned, `after` the gold tool before it; both are None when
    every planned call was made.
    """

    label: FailureLabel
    missed: str | None
    after: str | None


def label_failure(trajectory: Trajectory, task: Task) -> Failure | None:
    """The failure of an episode, or None when it passed.

    The rules go from what hides everything else (harness, format, loops) to what shows last (the answer). An episode
    that reaches the goal by another way than the plan passes and is never labelled.
    """
    if trajectory.outcome.status == "pass":
        return None
    made = [Call(tool=step.tool or "", arguments=step.arguments) for step in trajectory.calls]
    position = _first_missed(made, task.plan)
    missed = None if position is None else task.plan[position].tool
    after = task.plan[position - 1].tool if position else None
    return Failure(label=_label(trajectory, task, made, position), missed=missed, after=after)


def _label(trajectory: Trajectory, task: Task, made: Sequence[Call], position: int | None) -> FailureLabel:
    if trajectory.outcome.status == "infra_error":
        return "infra"
    kinds = [step.kind for step, _ in trajectory.steps]
    answer = next((step.answer for step, _ in trajectory.steps if step.kind == "answer"), None)
    if "malformed" in kinds or ("answer" in kinds and not _has_form(answer, task)):
        return "bad_format"
    if _is_loop(made) or "answer" not in kinds:
        return "loop"
    if position is not None:
        return _label_of_plan(made, task.plan, position)
    if {_STATE_CRITERION, CORRUPT_STATE} & {*trajectory.outcome.failed}:
        return "wrong_final_state"
    return "wrong_answer"


def _label_of_plan(made: Sequence[Call], plan: Sequence[Call], position: int) -> FailureLabel:
    planned = Counter(call.tool for call in plan)
    used = Counter(call.tool for call in made)
    missing_tool = plan[position].tool
    if used[missing_tool] < planned[missing_tool]:
        if used.keys() - planned.keys():
            return "wrong_tool"
        is_prefix = len(made) <= position or [_key(call) for call in made] == [_key(call) for call in plan[: len(made)]]
        return "early_stop" if is_prefix else "missing_step"
    return "wrong_argument"


def _first_missed(made: Sequence[Call], plan: Sequence[Call]) -> int | None:
    """Index of the first gold call without a counterpart among the calls made; order does not matter."""
    left = Counter(_key(call) for call in made)
    for index, call in enumerate(plan):
        if not left[_key(call)]:
            return index
        left[_key(call)] -= 1
    return None


def _is_loop(made: Sequence[Call]) -> bool:
    return any(count >= _REPEATS_OF_A_LOOP for count in Counter(_key(call) for call in made).values())


def _has_form(answer: object, task: Task) -> bool:
    fields = task.answer_schema.get("properties", {})
    return isinstance(answer, dict) and answer.keys() == fields.keys()


def _key(call: Call) -> str:
    return canonical_json([call.tool, dict(call.arguments)])
