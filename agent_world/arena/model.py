"""What the arena finds and asks for: failure labels, the weak set, guidelines (method.md 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

FailureLabel = Literal[
    "wrong_tool",
    "wrong_argument",
    "missing_step",
    "early_stop",
    "loop",
    "bad_format",
    "wrong_final_state",
    "wrong_answer",
    "infra",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guideline:
    """What targeted synthesis shall exercise in one environment. An empty guideline asks for the usual distribution.

    `tools`, `edges` and `patterns` are weighted up in walks; `knobs` bound difficulty (name to [low, high]);
    `enrich` asks for a complexification round first.
    """

    environment: str
    ability: str = ""
    tools: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    patterns: tuple[str, ...] = ()
    writes: bool | None = None
    kinds: tuple[Literal["graph", "program"], ...] = ()
    knobs: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    enrich: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """One entry of the ranked weak set `W`: pass rate with its interval, and the labels of its failures."""

    environment: str
    category: str
    pass_rate: float
    low: float
    high: float
    samples: int
    labels: Mapping[FailureLabel, int]
    severity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRate:
    """How often episodes failed in one way: `count` of `samples`, and the 95 % Wilson interval of that rate."""

    label: FailureLabel
    count: int
    samples: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDistribution:
    """How the episodes of one environment, or of one first-level category, failed: `rates` the most frequent first.

    Rates are of the `samples` episodes that have an outcome; that of `infra` is of all episodes. Labels that never came
    up are left out.
    """

    by: Literal["environment", "category"]
    name: str
    samples: int
    rates: tuple[LabelRate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The outcome of one round's diagnosis; `weak` may be empty. `errors` has environments first, then categories."""

    round: int
    policy_version: str
    weak: tuple[Weakness, ...]
    guidelines: tuple[Guideline, ...]
    errors: tuple[ErrorDistribution, ...]
    summary: str
