"""Small lakes as each version of the events wrote them, kept to be opened by every later version.

``python -m tests.lake.old_lakes`` adds the one of today: run it when `lake_schemas/lifts.py` has gained a lift.
An archive holds ``lake/`` without projections and ``said.json``, what the code that wrote it read from it.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from agent_world.lake import Lake, open_lake, snapshots
from lake_schemas import lifts

FOLDER = Path(__file__).parent / "old"
TABLES = ("themes", "databases", "trajectories", "costs", "edges", "versions", "quarantine", "snapshots")


def said(lake: Lake) -> dict[str, Any]:
    """What a lake says, as JSON can carry it, by columns that the version then knew."""
    rows = {name: lake.read(name) for name in TABLES}
    files = {row["version_id"]: lake.files(row["version_id"]) for row in rows["themes"]}
    texts = {version: {path: data.decode() for path, data in found.items()} for version, found in files.items()}
    return json.loads(json.dumps({"rows": rows, "files": texts}, default=str))


def fill(lake: Lake) -> None:
    """An event of every type, a payload that is a blob, files in a pack and in an object."""
    for number in (1, 2):
        with lake.begin("stage", f"{number}", derivation="d", run_id="run", code_version=f"{number}") as batch:
            files = {"small": f"{number}" * 99, "large": f"{number} again " * 150_000}
            theme = batch.create(
                "theme", "a", {"title": f"title {number}"}, files={path: text.encode() for path, text in files.items()}
            )
            batch.create("database", "d", {"round": 0}, parents=[(theme, "theme")])
            batch.create("trajectory", f"t{number}", {"steps": ["x" * 70_000, number]}, parents=[(theme, "theme")])
            batch.observe(theme, {"verdict": f"verdict {number}"})
            batch.record("costs", {"stage": "s", "subject": f"{number}", "calls": number})
            batch.quarantine(stage="s", item=f"{number}", reason="r", detail="d", raw=b"raw")
    with lake.begin("retire", derivation="d", code_version="1") as batch:
        theme = lake.resolve("theme", "a")
        batch.retire(theme, "because")
    with lake.begin("reinstate", derivation="d", code_version="1") as batch:
        batch.reinstate(theme, "created", "after all")
        batch.retire(theme, "because")
    with lake.begin("alarm", derivation="d", code_version="1") as batch:
        batch.alarm(lake.resolve("database", "d"), "derivation", "second")
    snapshots.create(lake)


def main() -> None:
    """Write the archive of today's version."""
    with tempfile.TemporaryDirectory() as folder:
        lake = open_lake(Path(folder) / "lake")
        fill(lake)
        (Path(folder) / "said.json").write_text(json.dumps(said(open_lake(lake.uri))))
        for name in ("projections", "locks"):
            shutil.rmtree(Path(folder) / "lake" / name, ignore_errors=True)
        FOLDER.mkdir(exist_ok=True)
        with tarfile.open(FOLDER / f"events-{lifts.newest()}.tar.xz", "w:xz") as archive:
            for name in ("lake", "said.json"):
                archive.add(Path(folder) / name, name)


if __name__ == "__main__":
    main()
