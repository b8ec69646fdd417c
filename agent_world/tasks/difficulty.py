"""Difficulty as a number: a logistic model from a task's knobs to the pass rate of a named policy, and aiming by it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from agent_world.tasks.model import Knobs, Task

FEATURES: tuple[str, ...] = tuple(field.name for field in fields(Knobs))
"""The knobs in order, as the model takes them."""

_RIDGE = 1.0
_STEPS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How often a policy passed one task: `passes` of `runs`."""

    knobs: Knobs
    passes: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """A fitted model: log-odds = bias + weights . (knobs - mean) / scale, each a mapping by knob."""

    policy: str
    bias: float
    weights: Mapping[str, float]
    mean: Mapping[str, float]
    scale: Mapping[str, float]

    def pass_rate(self, knobs: Knobs) -> float:
        """The predicted chance that the policy passes a task with these knobs."""
        odds = self.bias + sum(
            weight * (getattr(knobs, name) - self.mean[name]) / self.scale[name]
            for name, weight in self.weights.items()
        )
        return float(1 / (1 + np.exp(-odds)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """Asks the sampler for tasks whose predicted pass rate is about `rate`; others come through now and then.

    A task whose prediction is `spread` away is kept with chance 0.6, one three times as far with chance 0.01. Aiming at
    a middle rate avoids groups of rollouts that all pass or all fail, which carry no gradient.
    """

    difficulty: Difficulty
    rate: float
    spread: float = 0.15

    def wants(self, task: Task, rng: random.Random) -> bool:
        """Whether to keep `task`."""
        distance = (self.difficulty.pass_rate(task.knobs) - self.rate) / self.spread
        return rng.random() < float(np.exp(-(distance**2) / 2))


def fit(policy: str, measured: Sequence[Measured]) -> Difficulty:
    """The ridge-penalised logistic regression of `measured`, by Newton steps.

    Raises:
        ValueError: nothing was measured.
    """
    runs = np.array([item.runs for item in measured], dtype=float)
    if not runs.sum():
        raise ValueError("a difficulty model needs at least one measured run")
    rates = np.array([item.passes for item in measured]) / np.maximum(runs, 1)
    knobs = np.array([[float(getattr(item.knobs, name)) for name in FEATURES] for item in measured])
    mean, scale = knobs.mean(axis=0), knobs.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    design = np.column_stack([np.ones(len(knobs)), (knobs - mean) / scale])
    penalty = np.diag([1e-6] + [_RIDGE] * len(FEATURES))
    weights = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        predicted = 1 / (1 + np.exp(-design @ weights))
        gradient = design.T @ (runs * (rates - predicted)) - penalty @ weights
        hessian = (design.T * (runs * predicted * (1 - predicted))) @ design + penalty
        step = np.linalg.solve(hessian, gradient)
        weights = weights + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-9:
            break
    named = zip(FEATURES, weights[1:].tolist(), mean.tolist(), scale.tolist(), strict=True)
    by_knob = {name: (weight, centre, width) for name, weight, centre, width in named}
    return Difficulty(
        policy=policy,
        bias=float(weights[0]),
        weights={name: value[0] for name, value in by_knob.items()},
        mean={name: value[1] for name, value in by_knob.items()},
        scale={name: value[2] for name, value in by_knob.items()},
    )
