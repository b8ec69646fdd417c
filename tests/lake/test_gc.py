"""gc removes what nothing needs, only when it is old, and never while a batch is in flight."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from agent_world.lake import DamagedError, Lake, LakeBusyError, open_lake, snapshots
from agent_world.lake.faults import KILL_AT
from agent_world.lake.gc import gc
from agent_world.lake.maintenance import compact, disk_use
from agent_world.lake.proof import verify
from agent_world.lake.replay import replay
from lake_schemas import TABLES

NOW = timedelta(0)


def fill(lake: Lake, name: str) -> None:
    with lake.begin("x", name, derivation="d") as batch:
        batch.create("theme", name, {"title": name}, files={"f": name.encode() * 50, "g": name.encode() * 400_000})


def leave_garbage(lake: Lake) -> set[str]:
    """What writers leave that die before their commit."""
    with pytest.raises(RuntimeError), lake.begin("x", "lost", derivation="d") as batch:
        batch.put({"f": b"lost" * 400_000})
        batch.finish()
        raise RuntimeError
    lake.storage.write("events/part-lost.parquet", b"lost")
    (Path(lake.uri) / "blobs" / ".half.0.aside").write_bytes(b"half")
    return {"events/part-lost.parquet", "blobs/.half.0.aside"}


def test_garbage_goes_and_everything_named_stays(lake: Lake):
    fill(lake, "a")
    known = {item.key for item in lake.storage.list("blobs")}
    left = leave_garbage(lake)
    orphans = {item.key for item in lake.storage.list("blobs")} - known | left
    files = lake.files(lake.resolve("theme", "a"))
    assert {item.key for item in gc(lake, grace=NOW)} == orphans
    assert all(map(lake.storage.exists, orphans))
    assert {item.key for item in gc(lake, grace=NOW, dry_run=False)} == orphans
    assert not any(map(lake.storage.exists, orphans))
    assert open_lake(lake.uri).files(lake.resolve("theme", "a")) == files
    assert gc(lake, grace=NOW) == []


def test_what_is_younger_than_the_grace_period_stays(lake: Lake):
    fill(lake, "a")
    leave_garbage(lake)
    assert gc(lake) == []
    week_ago = os.stat(lake.uri).st_mtime - 8 * 86_400
    os.utime(Path(lake.uri) / "blobs" / ".half.0.aside", (week_ago, week_ago))
    assert [item.key for item in gc(lake)] == ["blobs/.half.0.aside"]


def test_projections_out_of_use_go_and_those_in_use_stay(lake: Lake):
    fill(lake, "a")
    lake.refresh()
    old = str(lake.projections.generation())
    replay(lake)
    removed = gc(lake, grace=NOW, dry_run=False)
    assert removed and {item.key.split("/")[1] for item in removed} == {old}
    assert all(result.same for result in replay(open_lake(lake.uri), verify=True))


def test_rewritten_files_of_a_projection_in_use_go(lake: Lake):
    for title in "abc":
        with lake.begin("x", derivation=title) as batch:
            batch.create("theme", "same", {"title": title})
        lake.refresh()
    in_use = f"projections/{lake.projections.generation()}/themes/"
    removed = gc(lake, grace=NOW, dry_run=False)
    assert len([item for item in removed if item.key.startswith(in_use)]) == 2
    assert [row["title"] for row in open_lake(lake.uri).read("themes")] == ["a", "b", "c"]


def test_gc_does_not_run_while_a_batch_is_in_flight(uri: str):
    lake = open_lake(uri)
    with lake.begin("x", derivation="d") as batch:
        batch.put({"f": b"x"})
        with pytest.raises(LakeBusyError, match="a batch is in flight"):
            gc(open_lake(uri), grace=NOW, dry_run=False)
    assert gc(lake, grace=NOW, dry_run=False) == []


def test_a_batch_does_not_begin_while_gc_is_at_work(lake: Lake, monkeypatch):
    monkeypatch.setattr("agent_world.lake.lake._GC_WAITS", 2)
    monkeypatch.setattr("agent_world.lake.lake._GC_WAIT_S", 0)
    with lake.storage.exclusive("in-flight"), pytest.raises(LakeBusyError, match="gc is at work"):
        fill(open_lake(lake.uri), "a")
    fill(lake, "a")


def test_gc_that_is_killed_has_removed_only_garbage_and_the_next_one_finishes(tmp_path: Path):
    lake = open_lake(tmp_path / "lake")
    for number in range(3):
        fill(lake, f"{number}")
        lake.storage.write(f"blobs/packs/aa/lost{number}", b"lost")
        lake.refresh()
    snapshot = snapshots.create(lake)
    lake.log.compact()
    replay(lake)
    code = (
        "import sys; from datetime import timedelta; from agent_world.lake import open_lake; from agent_world.lake.gc"
        " import gc; gc(open_lake(sys.argv[1]), grace=timedelta(0), dry_run=False)"
    )
    garbage = len(gc(lake, grace=NOW))
    for point in (1, 5):
        environment = os.environ | {KILL_AT: f"gc_delete:{point}"}
        killed = subprocess.run([sys.executable, "-c", code, lake.uri], env=environment, check=False)
        assert killed.returncode == -signal.SIGKILL
        assert verify(open_lake(lake.uri), snapshot) == []
    left = gc(lake, grace=NOW, dry_run=False)
    assert 0 < len(left) < garbage and gc(lake, grace=NOW) == []
    assert verify(open_lake(lake.uri), snapshot) == []


def test_compaction_leaves_few_files_and_every_pin_as_it_was(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("agent_world.lake.maintenance._WORTH_ORDERING", 12)
    lake = open_lake(tmp_path / "lake")
    pinned = []
    for number in range(12):
        fill(lake, f"{number % 7}-{number}")
        lake.refresh()
        if number % 5 == 0:
            pinned.append((snapshots.create(lake), lake.read("themes")))
    rows = {name: lake.read(name) for name in TABLES}
    before = disk_use(lake.storage)
    done = {table.table: table for table in compact(lake)}
    assert done["events"].files_before > 12 and done["events"].files_after == 1
    assert done["themes"].ordered_by == "artifact_id" and done["themes"].files_after == 1
    assert disk_use(lake.storage)["events"] > before["events"]  # only gc removes
    gc(lake, grace=NOW, dry_run=False)
    after = disk_use(lake.storage)
    assert after["projections"] < before["projections"] and after["blobs"] == before["blobs"]
    fresh = open_lake(lake.uri)
    assert {name: fresh.read(name) for name in TABLES} == rows
    stored = DeltaTable(tmp_path / "lake" / "projections" / str(lake.projections.generation()) / "themes")
    names = stored.to_pyarrow_table().column("artifact_id").to_pylist()
    assert names == sorted(names)
    for snapshot, themes in pinned:
        assert verify(fresh, snapshot) == [] and fresh.read("themes", at=snapshot) == themes
    fill(fresh, "more")
    fresh.refresh()
    assert len(open_lake(lake.uri).read("themes")) == 13


def test_gc_keeps_its_hands_off_projections_that_a_replay_is_making(lake: Lake, monkeypatch):
    fill(lake, "a")
    lake.refresh()
    save, refused = lake.projections.save, []

    def gc_meanwhile(*arguments):
        with pytest.raises(LakeBusyError):
            gc(open_lake(lake.uri), grace=NOW, dry_run=False)
        refused.append(True)
        return save(*arguments)

    monkeypatch.setattr(lake.projections, "save", gc_meanwhile)
    assert len(replay(lake)) == len(refused) == len(TABLES)
    assert len(gc(open_lake(lake.uri), grace=NOW)) > 0


def test_nothing_is_compacted_or_removed_while_a_pin_cannot_be_read(tmp_path: Path):
    lake = open_lake(tmp_path / "lake")
    fill(lake, "a")
    place = lake.blobs.place(snapshots.create(lake))
    assert place is not None
    (tmp_path / "lake" / place.pack).write_bytes(b"?")
    before = {item.key for item in lake.storage.list()}
    for work in (compact, lambda opened: gc(opened, grace=NOW, dry_run=False)):
        with pytest.raises(DamagedError, match=place.pack.rpartition("/")[2]):
            work(open_lake(lake.uri))
    assert {item.key for item in lake.storage.list()} == before


def test_what_a_snapshot_pins_stays_though_one_of_its_files_is_gone(tmp_path: Path):
    lake = open_lake(tmp_path / "lake")
    fill(lake, "a")
    fill(lake, "b")
    manifest = snapshots.manifest_of(lake, snapshots.create(lake))
    lake.log.compact()
    gone, kept = (tmp_path / "lake" / "events" / file["path"] for file in manifest["files"])
    gone.unlink()
    gc(lake, grace=NOW, dry_run=False)
    assert kept.exists()
