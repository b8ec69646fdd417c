"""A process that writes to a lake, for tests that race and kill such processes.

``python -m tests.lake.writer URI WHO FIRST LAST [same]`` commits the batches FIRST to LAST and prints each when it is
acknowledged; with ``same`` the batches have the same keys whoever writes them.
"""

from __future__ import annotations

import sys

from agent_world.lake import Lake, open_lake


def write(lake: Lake, who: str, number: int) -> None:
    """One batch that touches every kind of thing: a version, an observation, a fact, small and large files, an edge."""
    with lake.begin("stage", f"{who}-{number:03}", derivation="d", run_id="run", code_version="1") as batch:
        if batch.done:
            return
        files = {"small": f"{who} {number}".encode() * 50, "large": f"{who} {number} ".encode() * 300_000}
        theme = batch.create("theme", f"{who}-{number:03}", {"title": f"{who} {number}"}, files=files)
        batch.create("database", f"db-{who}-{number:03}", {"round": number}, parents=[(theme, "theme")])
        batch.observe(theme, {"match_score": number / 7})
        batch.record("costs", {"stage": who, "subject": theme, "calls": number})


def main(uri: str, who: str, first: str, last: str, same: str = "") -> None:
    """Write, and say so."""
    lake = open_lake(uri)
    for number in range(int(first), int(last) + 1):
        write(lake, "same" if same else who, number)
        print(number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
