"""What can keep Spark from starting."""

from __future__ import annotations

from agent_world.lake.errors import LakeError


class SparkUnavailableError(LakeError):
    """Spark cannot be used: `why`, and the `cure`."""

    def __init__(self, why: str, cure: str) -> None:
        super().__init__(why, cure)
        self.why, self.cure = why, cure

    def __str__(self) -> str:
        return f"Spark is not available: {self.why}; {self.cure}"
