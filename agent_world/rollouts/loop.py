"""Many live episodes against one policy, and the replay of what they recorded (method.md 6)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_world.codec import encode
from agent_world.environments.model import Environment
from agent_world.environments.session import open_session
from agent_world.identity import Digest, VersionId, canonical_json, content_hash, sha256, version_id
from agent_world.rollouts.cutting import shown
from agent_world.rollouts.episode import Episode, Opener, digest_now, judge_together
from agent_world.rollouts.model import Observation, Outcome, Policy, Step, Trajectory
from agent_world.rollouts.rewards import Judge
from agent_world.rollouts.users import Users, scripted
from agent_world.tasks.model import Task

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox

MAX_STEPS = 40
MAX_MALFORMED = 3
"""An episode ends with this many steps that were no steps: its policy does not speak the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSpec:
    """One episode to run. `seed` is the policy's (the session's is the task's), `sample` its index in the group.

    `task_version` names the exact version of the task; without it the hash of the task itself is taken.
    """

    task: Task
    environment: Environment
    sample: int = 0
    seed: int = 0
    task_version: VersionId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What came out when a trajectory was run again; `differs_at` is the first step whose observation changed."""

    digest: Digest
    same_digest: bool
    differs_at: int | None

    @property
    def holds(self) -> bool:
        """Same observations, same final state."""
        return self.same_digest and self.differs_at is None


def roll_out(
    episodes: Sequence[EpisodeSpec],
    policy: Policy,
    *,
    sandbox: Sandbox | None = None,
    max_steps: int = MAX_STEPS,
    max_malformed: int = MAX_MALFORMED,
    max_repeats: int = 0,
    live: int = 64,
    users: Users = scripted,
    free_form: Judge | None = None,
    open_session: Opener = open_session,
) -> list[Trajectory]:
    """Run all `episodes`, at most `live` at once, one `policy.act` for all live ones; one trajectory each, in order.

    Each has a user of its own.

    An episode that the policy cannot go on with (its `act` raises for it alone as well) is an `infra_error`; its
    neighbours go on. An episode without an answer after `max_steps` steps has failed, and so has one with
    `max_malformed` steps that were none, or with `max_repeats` equal steps that brought back the same (0: no limit).

    Raises:
        PinMismatchError, UnjudgeableTaskError: an episode that should never have been opened.
    """
    waiting = deque(range(len(episodes)))
    running: dict[int, Episode] = {}
    finished: dict[int, Episode] = {}
    identities = [_identity(spec, policy) for spec in episodes]
    names = _distinct(identities)
    try:
        while waiting or running:
            while waiting and len(running) < live:
                index = waiting.popleft()
                spec = episodes[index]
                running[index] = Episode(
                    spec.task, spec.environment, seed=spec.seed, sandbox=sandbox, user=users(spec.task, spec.seed),
                    free_form=free_form, name=names[index], open_session=open_session,
                )  # fmt: skip
            ready = {index: episode for index, episode in running.items() if not episode.over}
            _advance(list(ready.values()), policy, max_steps, max_malformed, max_repeats)
            ended = [index for index, episode in running.items() if episode.over]
            policy.forget([names[index] for index in ended])
            for index in ended:
                finished[index] = running.pop(index)
    finally:
        for episode in running.values():
            episode.close()
    judge_together(list(finished.values()))
    return [_trajectory(identities[index], spec, policy, finished[index]) for index, spec in enumerate(episodes)]


def replay(trajectory: Trajectory, task: Task, environment: Environment, *, sandbox: Sandbox | None = None) -> Replay:
    """Run the recorded tool calls again on the pinned environment (the gate `trajectory`).

    What was cut is compared whole.
    """
    differs_at = None
    with open_session(environment, task.seed, sandbox) as session:
        for index, (step, recorded) in enumerate(trajectory.steps):
            if step.kind != "tool" or step.tool is None or recorded is None:
                continue
            again = session.call(step.tool, step.arguments)
            seen = replace(again, value=shown(again.value))
            same = canonical_json(encode(seen)) == canonical_json(encode(recorded))
            whole = trajectory.uncut.get(index, again.value)
            if differs_at is None and not (same and canonical_json(whole) == canonical_json(again.value)):
                differs_at = index
        digest = digest_now(session)
    return Replay(digest=digest, same_digest=digest == trajectory.final_digest, differs_at=differs_at)


def version_of(task: Task) -> VersionId:
    """The exact version of a task that stands for itself: the hash of its payload."""
    return version_id(task.task_id, content_hash("task", encode(task)))


def _advance(episodes: Sequence[Episode], policy: Policy, max_steps: int, max_malformed: int, max_repeats: int) -> None:
    """One step for each episode."""
    for episode, step in zip(episodes, _steps(episodes, policy), strict=True):
        if isinstance(step, Exception):
            episode.blame("the policy", step)
            continue
        episode.take(step)
        malformed = sum(taken.kind == "malformed" for taken, _ in episode.steps)
        if not episode.over and malformed >= max_malformed:
            episode.give_up(f"{malformed} malformed steps")
        elif not episode.over and max_repeats and _repeats(episode) >= max_repeats:
            episode.give_up(f"the same step {max_repeats} times")
        elif not episode.over and len(episode.steps) >= max_steps:
            episode.give_up(f"no answer within {max_steps} steps")


def _repeats(episode: Episode) -> int:
    """How often the last step was taken in this episode and brought back what it did now."""
    return [_seen(*taken) for taken in episode.steps].count(_seen(*episode.steps[-1]))


def _seen(step: Step, observation: Observation | None) -> tuple[object, ...]:
    return step.kind, step.tool, step.arguments, step.text, observation


def _steps(episodes: Sequence[Episode], policy: Policy) -> list[Step | Exception]:
    if not episodes:
        return []
    turns = [episode.turn() for episode in episodes]
    try:
        steps: list[Step | Exception] = [*policy.act(turns)]
        if len(steps) != len(turns):
            raise ValueError(f"{policy.name} gave {len(steps)} steps for {len(turns)} turns")
        return steps
    except Exception as error:
        if len(episodes) == 1:
            return [error]
    return [step for episode in episodes for step in _steps([episode], policy)]


def _distinct(names: Sequence[str]) -> list[str]:
    """`names` with a number behind each that has been there before: equal episodes are live side by side."""
    seen: Counter[str] = Counter()
    distinct = []
    for name in names:
        distinct.append(f"{name}#{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return distinct


def _identity(spec: EpisodeSpec, policy: Policy) -> str:
    task = spec.task_version or version_of(spec.task)
    parts = [task, *spec.task.environments, policy.name, policy.version, spec.sample, spec.seed]
    return f"trajectory-{sha256(canonical_json(parts))[:20]}"


def _trajectory(name: str, spec: EpisodeSpec, policy: Policy, episode: Episode) -> Trajectory:
    return Trajectory(
        trajectory_id=name,
        task=spec.task_version or version_of(spec.task),
        environment=spec.environment.version,
        policy=policy.name,
        policy_version=policy.version,
        sample=spec.sample,
        seed=spec.seed,
        steps=tuple(episode.steps),
        outcome=episode.outcome or Outcome(status="infra_error", detail="never judged"),
        final_digest=episode.final_digest,
        uncut=episode.uncut,
    )
