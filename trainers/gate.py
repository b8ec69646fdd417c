"""The gate of checkpoints (design.md 7): done as planned, nothing but numbers, some groups with spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainers.job import TrainJob, TrainResult


def objections(job: TrainJob, result: TrainResult, metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why a checkpoint is not to be used; empty when it is. `metrics` are the rows of the job's metrics file.

    - ``collapsed``: the collapse guard stopped the run.
    - ``steps_missing``: it ended early without saying why.
    - ``not_finite``: a weight is no number.
    - ``no_spread``: in no step of GRPO did the rollouts of a group differ in reward, so nothing was learnt by reward.
      A back-end that does not report spread is not held to it.
    """
    found = []
    if result.status == "rolled_back":
        found.append("collapsed")
    elif result.steps_done < job.hyper.steps:
        found.append("steps_missing")
    if not result.finite:
        found.append("not_finite")
    still = [row["zero_spread_groups"] for row in metrics if row.get("zero_spread_groups") is not None]
    if job.method == "grpo" and still and min(still) >= 1:
        found.append("no_spread")
    return found
