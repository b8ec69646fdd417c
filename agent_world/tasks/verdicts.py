"""What the gates of a task say: one verdict a gate, each with a typed reason and what it saw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_world.rollouts.model import Trajectory
from agent_world.tasks.model import Tier

GateName = Literal[
    "rubric", "leak", "evidence", "null", "gold", "wrong_answer", "state", "random", "solver", "trajectory"
]
GATES: tuple[GateName, ...] = (
    "rubric", "leak", "evidence", "null", "gold", "wrong_answer", "state", "random", "solver",
)  # fmt: skip
"""The gates of a task in the order they run, from cheap to dear."""

Reason = Literal[
    "no_rubric",  # nothing could fail
    "unknown_field",  # a criterion speaks of a field that is not asked for
    "field_not_judged",  # no criterion looks at the content of a field that is asked for
    "state_not_judged",  # no criterion looks at the final state
    "tool_name",  # a public text names a tool
    "identifier",  # a public text spells an identifier of two or more words
    "answer_misfits",  # the gold answer does not have the published shape
    "answer_not_json",  # the gold answer holds what JSON cannot carry
    "guessable_answer",  # a yes/no or a small count is all there is to get right
    "minted_id",  # the answer holds an id that only this run could know
    "null_passes",
    "gold_fails",  # the plan and the gold answer are not judged a pass
    "other_state",  # the plan ends in another state than recorded
    "other_answer",  # the solution, or the trace, gives another answer than recorded
    "no_wrong_answer",  # nothing in the answer can be got wrong
    "wrong_answer_passes",
    "passes_without_call",
    "unasked_write_passes",
    "random_passes",
    "not_consistent",  # fewer than two solver runs are right and agree
    "other_digest",  # a replay ends in another state
    "other_observation",  # a replay sees something else
    "infra_error",  # the harness or the verifier broke: nothing was proven
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict:
    """One gate's word on one candidate; `reason` is set exactly when it was rejected."""

    gate: GateName
    accepted: bool
    reason: Reason | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVerdict:
    """The verdict on one task. Gates after the first rejection did not run and have no entry.

    `tier` is ``train`` when every gate accepted, ``hard`` when only the solver's did not; ``practice`` for a task that
    is only ever demonstrated, which the dear gates did not see; None when the task is not kept. `trajectories` are the
    solver's runs, `demonstration` is the best of them without its detours, and `replay` the word of the gate
    `trajectory` on it: only one that replays is imitated.
    """

    task_id: str
    tier: Tier | None
    gates: tuple[GateVerdict, ...]
    solver_passes: int | None = None
    random_passes: int | None = None
    trajectories: tuple[Trajectory, ...] = ()
    demonstration: Trajectory | None = None
    replay: GateVerdict | None = None

    @property
    def accepted(self) -> bool:
        """Whether every gate but the solver's accepted it, so that it may be evaluated on and trained on by reward."""
        return self.tier in ("train", "hard")

    @property
    def rejected_by(self) -> GateVerdict | None:
        """The gate that said no, to the task or to its demonstration."""
        said = [*self.gates, *([self.replay] if self.replay else [])]
        return next((gate for gate in said if not gate.accepted), None)


def tail(passes: int, runs: int, rate: float) -> float:
    """The chance of at least `passes` passes in `runs` runs whose true pass rate is `rate`."""
    return sum(math.comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(passes, runs + 1))


def upper_bound(passes: int, runs: int, confidence: float = 0.95) -> float:
    """The one-sided Clopper-Pearson upper bound of a pass rate after `passes` of `runs`."""
    if passes >= runs:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        # As long as so few passes are still plausible, the true rate may be higher.
        low, high = (middle, high) if 1 - tail(passes + 1, runs, middle) > 1 - confidence else (low, middle)
    return high
