"""Runs `V_code` in a sandbox of its own: it sees the answer and the two states, never the agent's worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_world.environments.model import Json
from agent_world.environments.state import EnvironmentState
from agent_world.tasks.model import Task

if TYPE_CHECKING:
    from agent_world.sandbox import RunResult, Sandbox

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What the verifier said of one answer: the names of failed assertions, or how the verifier itself broke."""

    failed: tuple[str, ...] = ()
    error: str | None = None


def verify(
    task: Task,
    answers: Sequence[Mapping[str, Json]],
    initial: EnvironmentState,
    final: EnvironmentState,
    change: Mapping[str, Json],
    sandbox: Sandbox | None = None,
) -> list[Verification]:
    """One verification an answer, all in one run of the sandbox; an answer that breaks the run is tried alone.

    `change` is the normalised difference of the two states: what ``toolkit.changes`` gives in there.

    Raises:
        SandboxFailedError: the sandbox failed.
        CorruptStateError: a state cannot be read.
    """
    from agent_world.sandbox import default_sandbox

    result = _run(task, answers, initial, final, change, sandbox or default_sandbox())
    if result.status == "ok":
        return [_verification(item) for item in result.value]
    if len(answers) > 1:
        return [verify(task, [answer], initial, final, change, sandbox)[0] for answer in answers]
    return [Verification(error=f"{result.status}: {result.error}")]


def _run(
    task: Task,
    answers: Sequence[Mapping[str, Json]],
    initial: EnvironmentState,
    final: EnvironmentState,
    change: Mapping[str, Json],
    box: Sandbox,
) -> RunResult:
    from agent_world.sandbox import ask

    code = box.compiled(task.verifier or "", timeout_s=TIMEOUT_S)
    if code.status != "ok":
        return code
    before, after = initial.sealed(), final.sealed()
    setup = {
        "kind": "verifier",
        "seed": 0,
        "state_format": before.state_format,
        "documents": [before.documents_index, after.documents_index],
    }
    request = {"code": code.value, "answers": [dict(answer) for answer in answers], "gold": task.answer}
    with box.open([*before.descriptors(), *after.descriptors()], setup) as worker:
        return ask(worker, {**request, "changes": dict(change)}, TIMEOUT_S)


def _verification(item: Mapping[str, Json]) -> Verification:
    if "error" in item:
        return Verification(error=item["error"])
    return Verification(failed=tuple(item["failed"]))
