"""Processes that play the episodes of a training step side by side, over the weights as they are at that step."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, NamedTuple

from agent_world.rollouts.model import Trajectory
from trainers.run import die_with

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Seat(NamedTuple):
    """One attempt: the place of its task in the set, and how often that was tried before."""

    task: int
    sample: int


Play = Callable[[Sequence[Seat]], list[Trajectory]]
"""Plays these attempts together; one trajectory each, in order."""


class Players:
    """`count` processes forked from this one. They share its model's weights: what a step changes, they see.

    They are forked at the first call, so this process must not use a GPU; they end with it.
    """

    def __init__(self, model: PreTrainedModel, play: Play, count: int) -> None:
        model.share_memory()
        self._pool = ProcessPoolExecutor(
            count, mp_context=get_context("fork"), initializer=_enter, initargs=(play, os.getpid())
        )

    def __call__(self, hands: Sequence[Sequence[Seat]]) -> list[list[Trajectory]]:
        """Play each hand in one process.

        Raises:
            BrokenProcessPool: a process died.
        """
        return list(self._pool.map(_play_hand, hands))

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)


_play: Play


def _enter(play: Play, parent: int) -> None:
    import torch

    global _play
    die_with(parent)
    torch.set_num_threads(1)  # each has a core, and the threads of before the fork are gone
    _play = play


def _play_hand(seats: Sequence[Seat]) -> list[Trajectory]:
    return _play(seats)
