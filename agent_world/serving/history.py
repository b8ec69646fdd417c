"""What a served episode does not keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_world.rollouts.episode import Episode


def forget(episode: Episode) -> None:
    """Let go of all that was said in `episode`: it keeps that, and whole, for those who train on its record.

    A server has said it once, and nobody there reads it again; what is judged is the answer and the state.
    """
    episode.steps.clear()
    episode.uncut.clear()
