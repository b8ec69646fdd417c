"""`TrainJob -> TrainResult`: what every training back-end takes and gives (design.md 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent_world.identity import Digest, VersionId, canonical_json, sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyper:
    """Hyper-parameters; the defaults are the paper's (method.md 6). `kl_beta` has no value in the paper."""

    tasks_per_step: int = 32
    rollouts_per_task: int = 8
    clip_low: float = 0.2
    clip_high: float = 0.28
    kl_beta: float = 0.0
    temperature: float = 1.0
    top_p: float = 1.0
    max_trajectory_tokens: int = 81920
    max_generation_tokens: int = 32768
    max_turns: int = 40
    learning_rate: float = 1e-6
    steps: int = 100
    epochs: int = 1
    threads: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainJob:
    """One training job, frozen. Its hash names the output directory, so a retry resumes.

    `base` is a checkpoint version of the lake (None only for `init`), `task_set` and `trajectories` pin the data:
    GRPO trains on the tasks of the set, SFT on the named trajectories.
    """

    method: Literal["init", "sft", "grpo"]
    backend: Literal["trl", "nemo_aligner"]
    lake: str
    base: VersionId | None
    task_set: VersionId | None
    environments: tuple[VersionId, ...]
    hyper: Hyper
    seed: int
    trajectories: tuple[VersionId, ...] = ()
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    @property
    def job_hash(self) -> Digest:
        """The hash of everything but where the lake lies."""
        from agent_world.codec import encode

        return sha256(canonical_json({k: v for k, v in encode(self).items() if k != "lake"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult:
    """What a finished job left: a checkpoint directory with its digest, and what was measured.

    `rollouts_file` holds a sample of GRPO's episodes, a trajectory a line; `finite` says that every weight is a number.
    """

    status: Literal["succeeded", "rolled_back"]
    checkpoint: str
    digest: Digest
    steps_done: int
    metrics_file: str
    backend: str
    backend_version: str
    rollouts_file: str = ""
    finite: bool = True
    reason: str = ""
