"""Steps, observations, outcomes, trajectories, and the policy protocol (method.md 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol

from agent_world.codec import LEFT_OUT_WHEN_EMPTY, OF_ANY_KIND
from agent_world.environments.model import Json, PublicTool
from agent_world.identity import Digest, VersionId

ObservationStatus = Literal["ok", "refused", "invalid", "error"]
OutcomeStatus = Literal["pass", "fail", "infra_error"]
StepKind = Literal["tool", "reply", "answer", "malformed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What came back from one tool call, or what the user said: ``{"user": text}``.

    ok: `value` is the result. refused: a business rule said no. invalid: unknown tool or arguments that break its
    schema. error: the tool raised, hung or died. For the last three `value` is ``{"error": {"code", "message"}}``.
    """

    status: ObservationStatus
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What a local policy needs for training: the ids it wrote, their log-probabilities in nats."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One action: a tool call, a reply to the user, the final answer, or text that is none of them."""

    kind: StepKind
    tool: str | None = None
    arguments: Mapping[str, Json] = field(default_factory=dict)
    text: str | None = None
    answer: Json = None
    tokens: Tokens | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """All that a policy gets before each step, and nothing else.

    `environment` is the public tag of the environment; `seed` differs between samples of one task.
    """

    episode: str
    environment: str
    instruction: str
    tools: Sequence[PublicTool]
    answer_schema: Mapping[str, Json]
    history: Sequence[tuple[Step, Observation]]
    seed: int


class Policy(Protocol):
    """Acts in episodes. `act` gets one turn of each live episode and gives one step each, in order.

    A policy may keep per-episode state under ``turn.episode``; `forget` drops it.
    """

    name: str
    version: str

    def act(self, turns: Sequence[Turn]) -> list[Step]:
        """One step for each turn, in order."""
        ...

    def forget(self, episodes: Sequence[str]) -> None:
        """These episodes have ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Three-way: only pass and fail are rewards (1, 0); infra_error is never trained on.

    `failed` names the criteria or verifier assertions that did not hold.
    """

    status: OutcomeStatus
    failed: tuple[str, ...] = ()
    detail: str = ""

    @property
    def reward(self) -> float | None:
        """1, 0, or None when there is none."""
        return {"pass": 1.0, "fail": 0.0}.get(self.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """The record of one episode. Replaying `steps` on the pinned environment gives `final_digest` again.

    `steps` have the observations as the policy saw them; `uncut` has the whole value of each that was cut, by the index
    of its step.
    """

    trajectory_id: str
    task: VersionId
    environment: VersionId
    policy: str
    policy_version: str
    sample: int
    seed: int
    steps: tuple[tuple[Step, Observation | None], ...]
    outcome: Outcome
    final_digest: Digest | None
    uncut: Annotated[Mapping[int, Json], OF_ANY_KIND, LEFT_OUT_WHEN_EMPTY] = field(default_factory=dict)

    @property
    def calls(self) -> list[Any]:
        """The tool calls, in order."""
        return [step for step, _ in self.steps if step.kind == "tool"]
