"""The diagnosis on trial: policies with one planted fault each play real tasks, and what is found is scored.

Where the fault strikes is known, so that the weak set and the labels can be held against it (method.md 9). Episodes,
labels and diagnosis are those of a round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from agent_world.arena.diagnosis import Attempt, diagnose
from agent_world.arena.evaluation import evaluate
from agent_world.arena.model import FailureLabel
from agent_world.arena.scoring import Score, score
from agent_world.identity import rng
from agent_world.rollouts.faults import Fault, Planted

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox
    from agent_world.world import BoundTask

MOST_ENVIRONMENTS = 6
_STRUCK = 1 / 3
_RATE = 0.75
"""The share of its environments that a fault strikes, and of the episodes there."""

_EPISODES = 8
"""So many in each environment at the least: of fewer, chance leaves too many without a fault to tell anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One policy to be diagnosed: its fault, the environments where it strikes, and the tasks that it plays."""

    fault: Fault
    struck: tuple[str, ...]
    tasks: tuple[BoundTask, ...]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a trial's policy had and what the diagnosis said of it, environment key to label, and how right that is."""

    planted: Mapping[str, FailureLabel]
    found: Mapping[str, FailureLabel]
    episodes: int
    score: Score


def draw_environments(fault: Fault, keys: Sequence[str], *, seed: int) -> tuple[list[str], list[str]]:
    """The environments that a policy with `fault` plays, and those of them where it strikes; none for the healthy."""
    source = rng("trial", seed, fault)
    played = source.sample(sorted(keys), min(MOST_ENVIRONMENTS, len(keys)))
    struck = [] if fault == "healthy" else played[: max(1, round(len(played) * _STRUCK))]
    return sorted(played), sorted(struck)


def hold(trial: Trial, sandbox: Sandbox | None = None) -> Finding:
    """Play the trial's tasks, diagnose the episodes as a round's are, and score what comes out.

    Every task is played equally often: once, or more where some environment has few tasks.
    """
    tasks = {bound.version: bound.task for bound in trial.tasks}
    environments = {bound.environment.environment_id: bound.environment for bound in trial.tasks}
    policy = Planted(
        tasks.values(), environments.values(), trial.fault, only=trial.struck, rate=_RATE, seed=trial.seed
    )  # fmt: skip
    fewest = min(Counter(bound.environment.environment_id for bound in trial.tasks).values())
    samples = ceil(_EPISODES / fewest)
    played = evaluate(policy, trial.tasks, mode="sampled", samples=samples, seed=trial.seed, sandbox=sandbox)
    found = diagnose(
        [Attempt(trajectory=each.trajectory, task=tasks[each.task], environment=each.environment) for each in played],
        round=0,
        policy_version=policy.version,
        environments=environments,
        categories={},
        training_shapes={},
    )
    planted: dict[str, FailureLabel] = {} if trial.fault == "healthy" else dict.fromkeys(trial.struck, trial.fault)
    return Finding(
        planted=planted,
        found={guideline.environment: guideline.ability for guideline in found.guidelines},
        episodes=len(played),
        score=score(found, planted),
    )
