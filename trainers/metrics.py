"""The canonical names of training metrics, and the file they are streamed to.

What a back-end does not report is null, never 0. A line of ``metrics.jsonl`` is one step: ``{"stage", "step", ...}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

Stage = Literal["sft", "grpo"]

METRICS: dict[str, str] = {
    "loss": "what was minimised",
    "policy_loss": "cross-entropy of the tokens that the policy writes, nats",
    "context_loss": "cross-entropy of the tokens that the policy reads, nats",
    "reward_mean": "share of rollouts that passed",
    "reward_std": "its standard deviation over rollouts",
    "zero_spread_groups": "share of groups whose rollouts all got the same reward",
    "infra_errors": "rollouts without a reward, kept out of the loss",
    "entropy": "of the policy over its own tokens, nats",
    "kl_ref": "mean over tokens of log pi - log pi_start, nats",
    "clip_frac_low": "share of tokens clipped below",
    "clip_frac_high": "share of tokens clipped above",
    "completion_tokens_mean": "tokens written by the policy in one rollout",
    "truncated_frac": "share of rollouts without an answer",
    "turns_mean": "steps of one rollout",
    "tool_call_frequency": "tool calls of one rollout",
    "tool_error_rate": "share of tool calls that were refused, invalid or in error",
    "grad_norm": "before clipping",
    "lr": "learning rate of the first parameter group",
    "tokens": "tokens seen so far",
}


class MetricsFile:
    """Appends one line a step, flushed at once, so that a supervisor can follow. Use it with `with`."""

    def __init__(self, path: Path, stage: Stage) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._stage = stage

    def record(self, step: int, values: dict[str, float | None]) -> None:
        """Write one step; metrics that are not given are null.

        Raises:
            KeyError: a name that is not canonical.
        """
        unknown = values.keys() - METRICS.keys()
        if unknown:
            raise KeyError(f"not canonical metrics: {', '.join(sorted(unknown))}")
        row = {"stage": self._stage, "step": step} | {name: _finite(values.get(name)) for name in METRICS}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The complete lines of a metrics file, also while it is written."""
    if path.exists():
        for line in path.read_text("utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
