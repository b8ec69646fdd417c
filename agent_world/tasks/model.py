"""Tasks of both kinds, their rubric and their difficulty knobs (method.md 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from agent_world.codec import LEFT_OUT_WHEN_EMPTY
from agent_world.environments.model import Call, Json
from agent_world.identity import VersionId

CriterionKind = Literal[
    "field_present", "field_equals", "numeric_tolerance", "set_equals", "order", "state_equals", "free_form"
]
TaskKind = Literal["graph", "program"]
Tier = Literal["train", "hard", "practice"]
Purpose = Literal["general", "practice", "held_out", "arena", "targeted", "control"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One typed rubric item; all must hold for reward 1.

    `field` is a field of the answer; `expected` its value, or for `state_equals` the normalised state diff
    (agent_world/environments/state.py); `tolerance` is absolute.
    """

    name: str
    kind: CriterionKind
    field: str | None = None
    expected: Json = None
    tolerance: float = 0.0
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What makes a task hard, as numbers."""

    calls: int
    distinct_tools: int
    weak_share: float
    independent_share: float
    branches: int
    loops: int
    tables: int
    aggregates: int
    writes: int
    rewriting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One thing that the user of an episode knows or wants and the instruction does not say.

    fact: told when asked. constraint: insisted on. preference: given up when it cannot be. `words` are words or phrases
    that ask for it; `text` is how the user says it.
    """

    kind: Literal["fact", "constraint", "preference"]
    words: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A verifiable task over pinned environments.

    `plan` is the executed gold call sequence; `shape` its tools in order (what two tasks share when only their
    arguments differ). Graph tasks carry a `rubric`, program tasks `solution` (``pi_code``) and `verifier` (``V_code``)
    besides. `state_diff` is the normalised gold diff, empty for a read-only task. `serves` records, for a targeted
    task, the guideline field it exercises; `enrich` where it uses what the guideline had added to the database. `user`
    is what the simulated user holds back until the agent asks (``s_H``).
    """

    task_id: str
    kind: TaskKind
    environments: tuple[VersionId, ...]
    instruction: str
    answer_schema: Mapping[str, Json]
    answer: Json
    plan: tuple[Call, ...]
    shape: tuple[str, ...]
    rubric: tuple[Criterion, ...]
    state_diff: Mapping[str, Any]
    knobs: Knobs
    seed: int
    solution: str | None = None
    verifier: str | None = None
    purpose: Purpose = "general"
    round: int = 0
    serves: Mapping[str, Any] = field(default_factory=dict)
    user: Annotated[tuple[Wish, ...], LEFT_OUT_WHEN_EMPTY] = ()

    @property
    def writes(self) -> bool:
        """Whether the task changes the database."""
        return bool(self.state_diff)
