"""The gate of checkpoints: what it objects to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainers import jobs
from trainers.checkpoint import is_finite
from trainers.gate import objections
from trainers.job import TrainResult

STEPS = 3
GRPO = replace(jobs.job(), method="grpo", hyper=replace(jobs.job().hyper, steps=STEPS))
SOUND = TrainResult(
    status="succeeded", checkpoint="c", digest="d", steps_done=STEPS, metrics_file="m", backend="trl",
    backend_version="1",
)  # fmt: skip
SPREAD = [{"zero_spread_groups": share} for share in (1.0, 0.75, 1.0)]


def test_a_checkpoint_that_was_trained_as_planned_is_used():
    assert objections(GRPO, SOUND, SPREAD) == []


@pytest.mark.parametrize(
    ("changes", "metrics", "why"),
    [
        ({"status": "rolled_back", "steps_done": 1}, SPREAD, "collapsed"),
        ({"steps_done": STEPS - 1}, SPREAD, "steps_missing"),
        ({"finite": False}, SPREAD, "not_finite"),
        ({}, [{"zero_spread_groups": 1.0}] * STEPS, "no_spread"),
    ],
)
def test_what_it_objects_to(changes, metrics, why):
    assert objections(GRPO, replace(SOUND, **changes), metrics) == [why]


def test_spread_is_asked_of_grpo_alone_and_only_where_it_is_reported():
    still = [{"zero_spread_groups": 1.0}]
    assert objections(replace(GRPO, method="sft"), SOUND, still) == []
    assert objections(GRPO, SOUND, [{"zero_spread_groups": None}]) == []


def test_a_weight_that_is_no_number_is_found(tmp_path: Path):
    import torch
    from safetensors.torch import save_file

    save_file({"a": torch.ones(2)}, tmp_path / "one.safetensors")
    assert is_finite(tmp_path)
    save_file({"b": torch.tensor([1.0, float("nan")])}, tmp_path / "two.safetensors")
    assert not is_finite(tmp_path)
