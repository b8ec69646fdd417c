"""What fresh tasks may not share with tasks that were trained on (issue 3, part 11)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from agent_world.identity import Digest, artifact_id_of, canonical_json, sha256
from agent_world.tasks.model import Task


def text_key(task: Task) -> str:
    """The instruction up to case and white space."""
    return " ".join(task.instruction.casefold().split())


def plan_key(task: Task) -> Digest:
    """The environments, whatever their version, with the bound plan."""
    environments = sorted(artifact_id_of(version) for version in task.environments)
    return sha256(canonical_json([environments, [[call.tool, dict(call.arguments)] for call in task.plan]]))


def shape_key(task: Task) -> Digest:
    """The environments with the tools of the plan in order, arguments aside."""
    environments = sorted(artifact_id_of(version) for version in task.environments)
    return sha256(canonical_json([environments, list(task.shape)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskExclusions:
    """Texts and bound plans that must not come again, and plan shapes of which at most half may."""

    texts: frozenset[str] = frozenset()
    plans: frozenset[Digest] = frozenset()
    shapes: frozenset[Digest] = frozenset()

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> Self:
        """All that `tasks` rule out."""
        known = list(tasks)
        return cls(
            texts=frozenset(map(text_key, known)),
            plans=frozenset(map(plan_key, known)),
            shapes=frozenset(map(shape_key, known)),
        )

    def forbid(self, task: Task) -> bool:
        """Whether `task` shares its text or its bound plan with one of them."""
        return text_key(task) in self.texts or plan_key(task) in self.plans

    def know(self, task: Task) -> bool:
        """Whether the shape of its plan is one of theirs."""
        return shape_key(task) in self.shapes
