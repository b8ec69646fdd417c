"""gc removes what nothing needs, only when it is old, and never while a batch is in flight."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from agent_world.lake import Lake, LakeBusyError, open_lake
from agent_world.lake.gc import gc
from agent_world.lake.replay import replay

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
