"""Evaluation: one greedy and k sampled episodes a task, a row a sample, intervals by bootstrap over tasks.

Tasks, not samples, are drawn again: the samples of one task share its difficulty, so that they are no independent
evidence. Where all tasks agree there is nothing to draw, and an exact bound takes the place of the bootstrap. An
`infra_error` is no outcome of the policy: it is a row, but no part of a rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agent_world.identity import VersionId, seed_of
from agent_world.rollouts.loop import MAX_STEPS, EpisodeSpec, roll_out
from agent_world.rollouts.model import OutcomeStatus, Policy, Trajectory
from agent_world.tasks.verdicts import upper_bound

if TYPE_CHECKING:
    import numpy as np

    from agent_world.sandbox import Sandbox
    from agent_world.world import BoundTask

Mode = Literal["greedy", "sampled"]

_CONFIDENCE = 0.95
_RESAMPLES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One evaluated episode: a row of `evaluations`, with its trajectory beside it."""

    task: VersionId
    environment: str
    kind: str
    policy_version: str
    mode: Mode
    sample: int
    status: OutcomeStatus
    steps: int
    trajectory: Trajectory

    def row(self, *, point: str, task_set: str, round: int, failure: str | None = None) -> dict[str, Any]:
        """The row of `evaluations`; `failure` is the label that the diagnosis gives."""
        return {
            "point": point,
            "task_set": task_set,
            "task": self.task,
            "environment": self.environment,
            "kind": self.kind,
            "policy_version": self.policy_version,
            "mode": self.mode,
            "sample": self.sample,
            "status": self.status,
            "steps": self.steps,
            "failure": failure,
            "round": round,
        }


def evaluate(
    policy: Policy,
    tasks: Sequence[BoundTask],
    *,
    mode: Mode,
    samples: int = 1,
    seed: int = 0,
    sandbox: Sandbox | None = None,
    max_steps: int = MAX_STEPS,
    live: int = 192,
) -> list[Sample]:
    """Run every task `samples` times, all samples of a task after each other; `policy` decides what its mode means.

    The seed of a sample depends on `seed`, its task and its index: two policies meet the same draws.
    """
    specs = [
        EpisodeSpec(
            task=bound.task,
            environment=bound.environment,
            sample=sample,
            seed=seed_of("evaluation", seed, bound.version, sample),
            task_version=bound.version,
        )
        for bound in tasks
        for sample in range(samples)
    ]
    trajectories = roll_out(specs, policy, sandbox=sandbox, max_steps=max_steps, live=live)
    return [
        Sample(
            task=spec.task_version or trajectory.task,
            environment=spec.environment.environment_id,
            kind=spec.task.kind,
            policy_version=policy.version,
            mode=mode,
            sample=spec.sample,
            status=trajectory.outcome.status,
            steps=len(trajectory.steps),
            trajectory=trajectory,
        )
        for spec, trajectory in zip(specs, trajectories, strict=True)
    ]


class Interval(NamedTuple):
    """An estimate with its 95 % interval; `tasks` is how many it rests on."""

    estimate: float
    low: float
    high: float
    tasks: int

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of 0."""
        return self.low > 0 or self.high < 0


def task_rates(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The pass rate of each task over its samples; a task with nothing but `infra_error` has none."""
    passed: dict[str, list[bool]] = {}
    for row in rows:
        if row["status"] != "infra_error":
            passed.setdefault(row["task"], []).append(row["status"] == "pass")
    return {task: sum(outcomes) / len(outcomes) for task, outcomes in sorted(passed.items())}


def pass_rate(rows: Sequence[Mapping[str, Any]], *, seed: int = 0) -> Interval | None:
    """The mean of the tasks' pass rates; None when no row has an outcome.

    `rows` are rows of `evaluations` of one point and mode.
    """
    rates = list(task_rates(rows).values())
    return _interval(rates, 0.0, seed) if rates else None


def paired_difference(
    after: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]], *, seed: int = 0
) -> Interval | None:
    """The mean over tasks of the rate in `after` minus that in `before`, over those with both; None without any."""
    later, earlier = task_rates(after), task_rates(before)
    differences = [rate - earlier[task] for task, rate in later.items() if task in earlier]
    return _interval(differences, -1.0, seed) if differences else None


def _interval(values: Sequence[float], least: float, seed: int) -> Interval:
    """The interval of the mean of values between `least` and 1."""
    return _agreed(values[0], len(values), least) if len(set(values)) == 1 else _bootstrapped(values, seed)


def _agreed(value: float, tasks: int, least: float) -> Interval:
    """What `tasks` tasks that all say `value` prove: at most so many others differ, by as much as they can."""
    others = upper_bound(0, tasks, _CONFIDENCE)
    return Interval(value, value - others * (value - least), value + others * (1 - value), tasks)


def _bootstrapped(values: Sequence[float], seed: int) -> Interval:
    import numpy as np

    sample = np.asarray(values, dtype=np.float64)
    source: np.random.Generator = np.random.Generator(np.random.PCG64(seed_of("bootstrap", seed)))
    means = sample[source.integers(0, len(sample), (_RESAMPLES, len(sample)))].mean(1)
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(sample.mean()), float(low), float(high), len(sample))
