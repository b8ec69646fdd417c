"""A full disk is one clear sentence, nothing is half-visible, and the work goes on when there is space again."""

from __future__ import annotations

import subprocess
import sys
from errno import ENOSPC
from pathlib import Path

import pytest

from agent_world.lake import DiskFullError, Lake, open_lake
from agent_world.lake.errors import is_disk_full

FILL = """
import random, sys
from agent_world.lake import DiskFullError, open_lake
lake = open_lake(sys.argv[1] + "/lake")
source = random.Random(1)
done = 0
try:
    while True:
        with lake.begin("x", f"{done}", derivation="d") as batch:
            title = source.randbytes(30_000).hex()
            batch.create("theme", f"t{done}", {"title": title}, files={"f": source.randbytes(%d)})
        done += 1
except DiskFullError as error:
    print(error)
fresh = open_lake(sys.argv[1] + "/lake")
themes = fresh.read("themes")
print(done, len(themes), sum(len(fresh.files(row["version_id"])["f"]) for row in themes))
"""

READ_AND_WRITE = """
import sys
from agent_world.lake import open_lake
lake = open_lake(sys.argv[1])
print(len(lake.read("themes")), lake.sql("SELECT count(*) AS n FROM batches").to_pylist()[0]["n"])
try:
    with lake.begin("x", derivation="e") as batch:
        batch.record("costs", {"stage": "x", "subject": "y"})
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("size", [1_000, 1_500_000])
def test_a_full_disk_is_one_sentence_and_leaves_only_whole_batches(tmp_path: Path, size: int):
    small = str(tmp_path)
    command = ["bwrap", "--dev-bind", "/", "/", "--size", "6000000", "--tmpfs", small, sys.executable, "-c"]
    found = subprocess.run([*command, FILL % size, small], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    sentence, counts = found.stdout.splitlines()
    assert sentence.startswith(f"no space left on {small}/lake while writing ")
    assert sentence.endswith("nothing of it is visible, free space and resume")
    done, themes, total = map(int, counts.split())
    assert done >= 1 and themes == done and total == done * size


def test_on_a_read_only_disk_everything_is_read_and_nothing_is_written(lake: Lake):
    with lake.begin("x", derivation="d") as batch:
        batch.create("theme", "a", {"title": "t"}, files={"f": b"x"})
    lake.refresh()
    command = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", lake.uri, lake.uri, sys.executable, "-c", READ_AND_WRITE]
    found = subprocess.run([*command, lake.uri], capture_output=True, text=True, check=False)
    assert found.stdout.splitlines() == [
        "1 1", f"ReadOnlyError {lake.uri} cannot be written: the file system is read-only; mount it for writing"
    ], found.stderr  # fmt: skip


def test_work_goes_on_when_there_is_space_again(lake: Lake, monkeypatch):
    def full(handle: int) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr("agent_world.lake.storage.os.fsync", full)
    with pytest.raises(DiskFullError), lake.begin("x", derivation="d") as batch:
        batch.create("theme", "a", {"title": "t"}, files={"f": b"x"})
    monkeypatch.undo()
    assert open_lake(lake.uri).read("batches") == []
    with lake.begin("x", derivation="d") as batch:
        batch.create("theme", "a", {"title": "t"}, files={"f": b"x"})
    assert len(open_lake(lake.uri).read("themes")) == 1


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(ENOSPC, "x"), True),
        (RuntimeError("Generic LocalFileSystem error: No space left on device (os error 28)"), True),
        (OSError(5, "Input/output error"), False),
        (RuntimeError("permission denied"), False),
    ],
)
def test_every_engine_s_way_of_saying_so_is_understood(error: Exception, full: bool):
    assert is_disk_full(error) is full
