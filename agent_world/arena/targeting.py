"""Whether a targeted task serves the guideline it was made for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from agent_world.arena.model import Diagnosis, Guideline
from agent_world.tasks.model import Task


def exercises(task: Task, guideline: Guideline, patterns: dict[str, str]) -> bool:
    """True when `task` practises a tool, an edge or a pattern that `guideline` names, within its bounds.

    Args:
        task: the targeted task.
        guideline: what it was made for; an empty guideline is served by every task.
        patterns: tool name to its pattern.
    """
    if guideline.writes is not None and guideline.writes != task.writes:
        return False
    if guideline.kinds and task.kind not in guideline.kinds:
        return False
    if not (guideline.tools or guideline.edges or guideline.patterns):
        return True
    return (
        bool(set(guideline.tools) & set(task.shape))
        or bool(set(guideline.edges) & set(pairwise(task.shape)))
        or bool(set(guideline.patterns) & {patterns.get(tool, "") for tool in task.shape})
    )


def targeted_keys(diagnosis: Diagnosis, *, most: int | None = None) -> list[str]:
    """Partition keys ``r01|<environment>`` of the round's weak environments, weakest first."""
    weak: Sequence = diagnosis.weak[:most]
    return [f"r{diagnosis.round:02d}|{weakness.environment}" for weakness in weak]
