"""Plays stored episodes again with a part replaced, and has their answers judged again. Runs in a worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent_world.auditing.correction import Correction
from agent_world.auditing.judges import world_at
from agent_world.environments.model import Environment, Json
from agent_world.identity import Digest, VersionId, canonical_json
from agent_world.rollouts.episode import Episode, judge_together
from agent_world.rollouts.model import Outcome, Step, Trajectory
from agent_world.sandbox import Sandbox, default_sandbox
from agent_world.tasks.gates import gate_task, gold_gate
from agent_world.tasks.model import Task

SEED = 1


class Work(NamedTuple):
    """Stored episodes of one task; with `gates` the task itself is asked too whether it still stands."""

    task: VersionId
    trajectories: tuple[VersionId, ...]
    gates: bool


class Rescored(NamedTuple):
    """What a stored episode gives now. `new` is None where nothing can be said, and `why` tells the reason.

    `differing` are the places of the steps that bring back something else.
    """

    trajectory: VersionId
    old: Outcome
    new: Outcome | None
    old_digest: Digest | None
    new_digest: Digest | None
    differing: tuple[int, ...]
    why: str = ""

    @property
    def other_outcome(self) -> bool:
        """Whether it is judged otherwise: another status, or for other reasons."""
        return self.new is not None and (self.new.status, self.new.failed) != (self.old.status, self.old.failed)

    @property
    def changed(self) -> bool:
        """Whether anything of its record would be otherwise."""
        return self.other_outcome or (
            self.new is not None and (bool(self.differing) or self.new_digest != self.old_digest)
        )


class Rescoring(NamedTuple):
    """What came of one `Work`; `against` names the first gate that the task does not pass any more, and why."""

    task: VersionId
    episodes: list[Rescored]
    against: str | None


def rescore(uri: str, correction: Correction, work: Work) -> Rescoring:
    """Play the episodes of `work` again with the right part in its place.

    A tool makes what the calls bring back and the final state; a task is judged anew on the recorded calls, which must
    give the recorded state.
    """
    world, sandbox = world_at(uri), default_sandbox()
    bound = world.task(work.task)
    task = correction.task or bound.task
    environment = correction.environment(bound.environment)
    stored = [world.trajectory(version) for version in work.trajectories]
    episodes = _rescored(
        work.trajectories, stored, task, environment, sandbox, state_may_move=correction.tool is not None
    )
    return Rescoring(
        work.task, list(episodes), _against(correction, task, environment, sandbox) if work.gates else None
    )


def _rescored(
    versions: Sequence[VersionId], stored: Sequence[Trajectory], task: Task, environment: Environment,
    sandbox: Sandbox, *, state_may_move: bool,
) -> Iterator[Rescored]:  # fmt: skip
    played: dict[str, _Played] = {}
    keys = []
    for trajectory in stored:
        calls = [step for step, _ in trajectory.steps if step.kind in ("tool", "answer")]
        keys.append(canonical_json([[step.tool, step.arguments, step.answer] for step in calls]))
        if keys[-1] not in played:  # the runs of one task are often the same
            played[keys[-1]] = _play(calls, task, environment, sandbox)
    judge_together([each.episode for each in played.values()])
    for version, trajectory, key in zip(versions, stored, keys, strict=True):
        yield _compared(version, trajectory, played[key], state_may_move)


class _Played(NamedTuple):
    episode: Episode
    observed: list[str]
    """What each tool call brought back, whole, as canonical JSON."""
    answered: bool


def _play(steps: Sequence[Step], task: Task, environment: Environment, sandbox: Sandbox) -> _Played:
    observed = []
    with Episode(task, environment, seed=SEED, sandbox=sandbox) as episode:
        for step in steps:
            if not episode.over:
                place, seen = len(episode.steps), episode.take(step)
                if step.kind == "tool":
                    observed.append(_whole(seen.status, episode.uncut.get(place, seen.value)))
    return _Played(episode, observed, any(step.kind == "answer" for step in steps))


def _compared(version: VersionId, stored: Trajectory, played: _Played, state_may_move: bool) -> Rescored:
    calls = [place for place, (step, seen) in enumerate(stored.steps) if step.kind == "tool" and seen is not None]
    recorded = [_whole(seen.status, stored.uncut.get(n, seen.value)) for n in calls if (seen := stored.steps[n][1])]
    pairs = zip(calls, recorded, played.observed, strict=False)
    differing = tuple(place for place, old, new in pairs if old != new)
    episode, new, why = played.episode, played.episode.outcome, ""
    if stored.final_digest is None:
        new, why = None, f"it broke off: {stored.outcome.detail}"
    elif not state_may_move and (differing or episode.final_digest != stored.final_digest):
        new, why = None, "it does not replay to what is recorded"
    elif not played.answered:
        new = stored.outcome  # of an episode without an answer nothing is judged
    elif new is None or new.status == "infra_error":
        new, why = None, new.detail if new else "it was not judged"
    return Rescored(version, stored.outcome, new, stored.final_digest, episode.final_digest, differing, why)


def _against(correction: Correction, task: Task, environment: Environment, sandbox: Sandbox) -> str | None:
    from agent_world.solver import Solver

    if correction.tool is not None:
        verdicts = [gold_gate(task, environment, seed=SEED, sandbox=sandbox)]
    else:
        found = gate_task(task, environment, sandbox=sandbox, solver=Solver, seed=SEED, thorough=False)
        verdicts = list(found.gates)
    return next((f"{verdict.gate}: {verdict.reason}" for verdict in verdicts if not verdict.accepted), None)


def _whole(status: str, value: Json) -> str:
    return canonical_json([status, value])
