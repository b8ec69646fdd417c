"""Rollouts by forked processes are those of one process, over the weights of the moment."""

from __future__ import annotations

import os
import signal
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing

import pytest
import torch

from agent_world.rollouts.loop import roll_out
from agent_world.rollouts.model import Trajectory
from tests.models import little
from tests.trainers import jobs
from trainers.grpo import GrpoOptions
from trainers.players import Players, Seat
from trainers.rollouts import Rollouts

PROMPTS = ["0"] * 4 + ["1"] * 4


class Trainer:
    """As much of TRL's trainer as a rollout function may look at."""


def rollouts(model, threads: int) -> Rollouts:
    options = GrpoOptions(steps=1, kl_rows=0, live=4, threads=threads, max_turns=4)
    return Rollouts(model, little.renderer(), [jobs.bound(jobs.READING), jobs.bound(jobs.WRITING)], options, 0, None)


def nudge(model) -> None:
    """Change the weights in place, as an optimiser does."""
    source = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn(weights.shape, generator=source), alpha=0.5)


def test_two_processes_play_what_one_plays_and_see_what_a_step_changes():
    alone, shared = little.model(), little.model()
    with closing(rollouts(alone, 1)) as one, closing(rollouts(shared, 2)) as two:
        first = [made(PROMPTS, Trainer()) for made in (one, two)]
        nudge(alone)
        nudge(shared)
        second = [made(PROMPTS, Trainer()) for made in (one, two)]
    for mine, theirs in (first, second):
        assert mine["completion_ids"] == theirs["completion_ids"] and mine["reward"] == theirs["reward"]
        for a, b in zip(mine["logprobs"], theirs["logprobs"], strict=True):
            assert a == pytest.approx(b, abs=1e-4)
    assert first[0]["completion_ids"] != second[0]["completion_ids"]


def test_a_process_that_dies_is_an_error_and_no_endless_wait():
    def die(seats) -> list[Trajectory]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    with closing(Players(little.model(), die, 2)) as players, pytest.raises(BrokenProcessPool):
        players([[Seat(0, 0)], [Seat(1, 0)]])


def test_an_attempt_may_go_in_circles_as_often_as_the_options_say(monkeypatch):
    asked = {}

    def play(specs, policy, **limits):
        asked.update(limits)
        return roll_out(specs, policy, **limits)

    monkeypatch.setattr("trainers.rollouts.roll_out", play)
    with closing(rollouts(little.model(), 1)) as alone:
        alone(PROMPTS, Trainer())
    assert asked["max_repeats"] == GrpoOptions(steps=1).max_repeats == 3
