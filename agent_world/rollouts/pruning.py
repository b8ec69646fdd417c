"""Demonstrations without detours: a successful attempt less the calls that did not help it, run again as the proof.

A solver searches, and what it tries in vain depends on its seed; imitating that teaches a small policy nothing but
noise. A call is left out when nothing that came later rests on it. The rest is played in a fresh session and judged
like any attempt, so that a demonstration is always a recorded episode that passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_world.environments.model import Environment, Json
from agent_world.identity import canonical_json
from agent_world.rollouts.arguments import values_in
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.model import Observation, Step, Trajectory, Turn
from agent_world.rollouts.policies import Play, Scripted
from agent_world.tasks.model import Task

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox

_IN_VAIN = frozenset(("not_found", "invalid_arguments", "unknown_tool"))
"""Codes of calls that only told that the call was wrong; any other refusal may be what the task turns on."""

Recorded = tuple[Step, Observation | None]


def demonstrate(
    attempts: Iterable[Trajectory], task: Task, environment: Environment, *, sandbox: Sandbox | None = None
) -> Trajectory | None:
    """The shortest that a passed attempt becomes without its detours, as an episode that passed; None if none did."""
    writing = {tool.name for tool in environment.tools if tool.writes}
    passed = [attempt for attempt in attempts if attempt.outcome.status == "pass"]
    shortened = [(_needed(attempt.steps, task.instruction, writing), attempt) for attempt in passed]
    for kept, attempt in sorted(shortened, key=lambda pair: len(pair[0])):
        spec = EpisodeSpec(
            task=task, environment=environment, sample=attempt.sample, seed=attempt.seed, task_version=attempt.task
        )
        # Ids that a policy wrote belong to the context it wrote them in, which is another one without the detours.
        steps = [replace(step, tokens=None) for step, _ in kept]
        (again,) = roll_out([spec], _Played(attempt, steps), sandbox=sandbox)
        if again.outcome.status == "pass" and again.final_digest == attempt.final_digest:
            return again
    return None


class _Played(Scripted):
    """Takes given steps, whatever comes back."""

    def __init__(self, of: Trajectory, steps: Sequence[Step]) -> None:
        super().__init__()
        self.name, self.version = f"{of.policy}, without detours", of.policy_version
        self._steps = steps

    def play(self, turn: Turn) -> Play:
        yield from (step for step in self._steps)  # a generator, since an iterator takes nothing that is sent to it


def _needed(steps: Sequence[Recorded], instruction: str, writing: set[str]) -> list[Recorded]:
    """The steps less those that tell nothing, and less the readings that nothing later rests on."""
    kept = list(_telling(steps, writing))
    answer = kept[-1][0].answer
    if not all(_traceable(leaf) and _read_in(leaf, instruction, kept) for leaf in values_in(answer)):
        return kept  # something was counted or worked out: every reading may have gone into it
    for place in range(len(kept) - 2, -1, -1):
        step, _ = kept[place]
        rest = kept[:place] + kept[place + 1 :]
        if step.tool not in writing and _unread(rest, instruction) <= _unread(kept, instruction):
            kept = rest
    return kept


def _telling(steps: Sequence[Recorded], writing: set[str]) -> Iterator[Recorded]:
    """Without calls that were wrong, that found nothing, or that were made before and nothing written since.

    Finding nothing tells something where the answer says zero.
    """
    asked: set[str] = set()
    none_found = any(leaf == 0 and not isinstance(leaf, bool) for leaf in values_in(steps[-1][0].answer))
    for step, observation in steps:
        if observation is None or step.kind != "tool":
            yield step, observation
            continue
        if step.tool in writing and observation.status == "ok":
            asked.clear()
            yield step, observation
            continue
        call = canonical_json([step.tool, step.arguments])
        vain = _in_vain(observation) and not (none_found and observation.status == "ok")
        if not vain and call not in asked:
            yield step, observation
        asked.add(call)


def _in_vain(observation: Observation) -> bool:
    value = observation.value
    if not isinstance(value, Mapping):
        return False
    if observation.status == "ok":
        return value.get("total") == 0
    return value.get("error", {}).get("code") in _IN_VAIN


def _unread(steps: Sequence[Recorded], instruction: str) -> set[str]:
    """What calls and the answer say without having read it anywhere before."""
    known: set[str] = set()
    unread: set[str] = set()
    for step, observation in steps:
        said = values_in(step.answer if step.kind == "answer" else step.arguments)
        unread |= {str(leaf) for leaf in said if str(leaf) not in known and not _stands_in(instruction, leaf)}
        if observation is not None and observation.status == "ok":
            known |= {str(leaf) for leaf in values_in(observation.value)}
    return unread


def _read_in(leaf: Json, instruction: str, steps: Iterable[Recorded]) -> bool:
    return _stands_in(instruction, leaf) or any(
        leaf in values_in(observation.value) for _, observation in steps if observation is not None
    )


def _stands_in(text: str, leaf: Json) -> bool:
    """Whether `text` holds a value as a whole: the id ``B1`` is not said by ``AB12``."""
    said = str(leaf)
    return said in text and re.search(rf"(?<!\w){re.escape(said)}(?!\w)", text) is not None


def _traceable(leaf: Json) -> bool:
    """Whether a value tells where it was read: small numbers and truth values stand everywhere."""
    return isinstance(leaf, str) or (isinstance(leaf, (int, float)) and not isinstance(leaf, bool) and abs(leaf) >= 100)
