"""The partitions of a round's targeted tasks."""

from __future__ import annotations

from collections.abc import Sequence

from agent_world.arena.model import Diagnosis


def targeted_keys(diagnosis: Diagnosis, *, most: int | None = None) -> list[str]:
    """Partition keys ``r01|<environment>`` of the round's weak environments, weakest first."""
    weak: Sequence = diagnosis.weak[:most]
    return [f"r{diagnosis.round:02d}|{weakness.environment}" for weakness in weak]
