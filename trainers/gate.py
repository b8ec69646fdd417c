"""The gate of checkpoints (design.md 7): done as planned, nothing but numbers, some groups with spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_world.identity import Digest
from trainers.checkpoint import checkpoint_digest, is_finite
from trainers.job import TrainJob, TrainResult

if TYPE_CHECKING:
    from agent_world.auditing import Training


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
    if _without_spread(job.method, still):
        found.append("no_spread")
    return found


def objections_now(folder: Path, digest: Digest, training: Training) -> list[str]:
    """What an audit finds wrong with an accepted checkpoint: with its files, and by its metrics with its training.

    - ``other_digest``: the files are not those of `digest`; ``not_finite``: they are, and a weight is no number.
    - ``steps_missing``: the metrics end before the step that the job asked for.
    - ``no_spread``: as in `objections`.

    Raises:
        BadInputError: the folder holds no model.
    """
    found = []
    if checkpoint_digest(folder) != digest:
        found.append("other_digest")
    elif not is_finite(folder):
        found.append("not_finite")
    if training.last_step < training.asked:
        found.append("steps_missing")
    if _without_spread(training.method, training.zero_spread):
        found.append("no_spread")
    return found


def _without_spread(method: str, still: Sequence[float]) -> bool:
    """Whether all groups of all steps were without spread; `still` is their share in each step that reports it."""
    return method == "grpo" and bool(still) and min(still) >= 1
