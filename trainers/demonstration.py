"""A successful episode to imitate."""

from __future__ import annotations

from typing import NamedTuple

from agent_world.rollouts.model import Observation, Step, Turn


class Demonstration(NamedTuple):
    """The turn that an episode began with, and its steps, the answer last."""

    turn: Turn
    steps: tuple[tuple[Step, Observation | None], ...]
