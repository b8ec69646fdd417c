"""Batches that need every way of keeping things, and what may happen to their files."""

from __future__ import annotations

from pathlib import Path

from agent_world.lake import Lake


def fill(lake: Lake, first: int, last: int) -> None:
    """A batch a number: files in a pack and in an object, a payload that is a blob, an edge, an observation, a fact."""
    for number in range(first, last + 1):
        with lake.begin("stage", f"{number}", derivation="d", run_id="run", code_version="1") as batch:
            files = {"small": f"{number}".encode() * 99, "large": f"{number:07}".encode() * 200_000}
            theme = batch.create("theme", "a", {"title": f"{number}"}, files=files)
            batch.create("trajectory", f"t{number}", {"steps": ["x" * 70_000, number]}, parents=[(theme, "theme")])
            batch.observe(theme, {"match_score": number / 7})
            batch.record("costs", {"stage": "s", "subject": str(number), "calls": number})


def flip(file: Path, where: float = 0.5) -> None:
    """Turn one bit over, by default in the middle."""
    data = bytearray(file.read_bytes())
    data[int(len(data) * where)] ^= 1
    file.write_bytes(data)
