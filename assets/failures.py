"""Partitions whose work raised, while their neighbours went on: set aside in `quarantine` until they are made."""

from collections.abc import Sequence
from typing import NamedTuple

from agent_world.world import World

FAILED = "failed"
"""The reason of a quarantined partition whose work raised."""


class Failed(NamedTuple):
    """One partition of one stage, and what its work said last."""

    stage: str
    partition: str
    why: str


def failures(world: World) -> list[Failed]:
    """The partitions that failed and were not made since, by stage and name."""
    rows = world.read("quarantine", where={"reason": FAILED}, columns=["event_id", "stage", "item", "detail"])
    batches = world.read("batches", columns=["batch", "stage", "partition"]) if rows else []
    last = {(batch["stage"], batch["partition"]): batch["batch"] for batch in batches}
    return sorted(
        Failed(row["stage"], row["item"], row["detail"])
        for row in rows
        if last.get((row["stage"], row["item"]), "").startswith(row["event_id"].partition(":")[0])
    )


def failed_partitions(world: World, stage: str, *, among: Sequence[str]) -> list[str]:
    """Those of `among` that failed in a stage and were not made since."""
    failed = {failure.partition for failure in failures(world) if failure.stage == stage}
    return [name for name in among if name in failed]
