"""A snapshot pins what a lake says: it is read, carried elsewhere, proved, and it survives maintenance."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from agent_world.identity import canonical_json, sha256
from agent_world.lake import DamagedError, Lake, NotFoundError, carry, open_lake, snapshots
from agent_world.lake.errors import ConflictError, LakeBusyError
from agent_world.lake.gc import gc
from agent_world.lake.moments import Pinned
from agent_world.lake.proof import verify
from lake_schemas import TABLES
from lake_schemas.base import text
from tests.lake.batches import flip


def fill(lake: Lake, *numbers: int) -> None:
    for number in numbers:
        with lake.begin("stage", f"{number}", derivation="d", run_id="run", code_version="1") as batch:
            files = {"small": f"{number}".encode() * 99, "large": f"{number:07}".encode() * 200_000}
            theme = batch.create("theme", "a", {"title": f"{number}"}, files=files)
            batch.create("database", f"d{number}", {"round": number}, parents=[(theme, "theme")])
            batch.create("trajectory", f"t{number}", {"steps": ["x" * 70_000, number]})
            batch.record("costs", {"stage": "s", "subject": str(number), "calls": number})


def everything(view) -> dict:
    rows = {name: view.rows(name) for name in ("themes", "databases", "trajectories", "costs", "edges", "versions")}
    return rows | {"files": {row["version_id"]: view.files(row["version_id"]) for row in rows["themes"]}}


def test_a_snapshot_is_named_by_its_manifest_and_copies_nothing(lake: Lake):
    fill(lake, 1, 2)
    before = {item.key for item in lake.storage.list("events")} | {item.key for item in lake.storage.list("blobs")}
    snapshot = snapshots.create(lake, run_id="r")
    manifest = snapshots.manifest_of(lake, snapshot)
    assert sha256(canonical_json(manifest)) == snapshot
    [row] = lake.read("snapshots")
    assert (row["snapshot_id"], row["events_version"], row["run_id"]) == (snapshot, manifest["events_version"], "r")
    assert {f"events/{file['path']}" for file in manifest["files"]} <= before
    assert {row["blob_root"] for row in lake.read("themes")} == set(manifest["blob_roots"])
    added = {item.key for item in lake.storage.list("blobs")} - before
    assert sum(lake.storage.read_range(key, 0, 1 << 20) != b"" for key in added) == 1  # the manifest itself


def test_a_snapshot_of_an_unchanged_lake_is_the_same_snapshot(lake: Lake):
    fill(lake, 1)
    first = snapshots.create(lake)
    assert snapshots.create(lake) == first == snapshots.create(open_lake(lake.uri))
    fill(lake, 2)
    assert snapshots.create(lake) != first


def test_a_snapshot_shows_the_lake_as_it_stood(lake: Lake):
    fill(lake, 1, 2)
    seen = everything(lake)
    snapshot = snapshots.create(lake)
    fill(lake, 3)
    assert everything(lake) != seen
    for at in (snapshot, snapshot[:8]):
        assert everything(lake.at(at)) == seen
        assert lake.read("themes", at=at) == seen["themes"]
        assert lake.sql("SELECT count(*) AS n FROM databases", at=at).to_pylist() == [{"n": 2}]
    with pytest.raises(NotFoundError, match="neither a snapshot"):
        lake.read("themes", at="0" * 64)


@pytest.mark.parametrize("way", ["directory to bucket", "bucket to directory", "directory to directory"])
def test_a_snapshot_carried_elsewhere_says_the_same_there(tmp_path: Path, s3: str, way: str):
    places = {"directory": str(tmp_path / "one"), "bucket": f"{s3}/{way.replace(' ', '-')}"}
    source, _, target = way.split()
    lake = open_lake(places[source])
    other = places[target] if source != target else str(tmp_path / "two")
    fill(lake, 1, 2)
    seen = everything(lake)
    snapshot = snapshots.create(lake)
    fill(lake, 3)
    assert carry.export(lake, snapshot, other).snapshot == snapshot
    there = open_lake(other, create=False)
    assert everything(there) == everything(there.at(snapshot)) == seen
    assert verify(there, snapshot) == []
    carry.export(lake, snapshot, other)
    assert everything(open_lake(other)) == seen


def test_a_snapshot_whose_tables_other_code_folds_otherwise_is_proved_by_its_batches(tmp_path: Path, monkeypatch):
    lake = open_lake(tmp_path / "lake")
    fill(lake, 1)
    snapshot = snapshots.create(lake)
    monkeypatch.setattr("agent_world.lake.proof.table_digest", lambda *_, **__: "0" * 64)
    assert {problem.what for problem in verify(lake, snapshot)} == {f"table {name}" for name in TABLES}
    columns = TABLES["themes"].columns
    monkeypatch.setitem(TABLES, "themes", replace(TABLES["themes"], columns=(*columns, text("more", "a new column"))))
    assert "table themes" not in {problem.what for problem in verify(lake, snapshot)}
    monkeypatch.setattr(snapshots, "FOLD", snapshots.FOLD + 1)
    assert verify(lake, snapshot) == []


def test_an_import_joins_a_lake_that_has_history_of_its_own(tmp_path: Path):
    one, two = open_lake(tmp_path / "one"), open_lake(tmp_path / "two")
    fill(one, 1, 2)
    seen = everything(one)
    snapshot = snapshots.create(one)
    fill(two, 9, 2)
    assert [carried.snapshot for carried in carry.import_from(two, one.uri)] == [snapshot]
    there = everything(two.at(snapshot))
    assert there["files"] == seen["files"]
    assert [(row["version_id"], row["rev"], row["state"]) for row in there["themes"]] == [
        (row["version_id"], row["rev"], row["state"]) for row in seen["themes"]
    ]
    assert sorted(row["calls"] for row in two.read("costs")) == [1, 2, 9]
    assert verify(two, snapshot) == []
    before = two.events_version()
    assert [carried.snapshot for carried in carry.import_from(two, one.uri)] == [snapshot]
    assert two.events_version() == before
    with two.begin("stage", "1", derivation="d") as batch:
        assert batch.done


@pytest.mark.parametrize("slices", [1, 512])
def test_pinned_batches_come_in_their_own_order_whole_wherever_they_lie(lake: Lake, monkeypatch, slices: int):
    monkeypatch.setattr("agent_world.lake.runs._SLICES", slices)
    fill(lake, *range(6))
    events = lake.table("events")
    own = [row["batch"] for row in lake.read("batches")]
    for batches in (own, own[:3], own[2:], [own[4], own[1], own[2], own[0]], []):
        parts = [lake.batch_events(batch) for batch in batches]
        found = Pinned(lake.log, batches).read(-1, lake.events_version())
        assert found.equals(pa.concat_tables([events.slice(0, 0), *parts]))


def test_gc_takes_nothing_while_a_snapshot_is_being_made(lake: Lake, monkeypatch):
    fill(lake, 1)
    refused = []

    def gc_meanwhile(*arguments):
        with pytest.raises(LakeBusyError):
            gc(open_lake(lake.uri), grace=timedelta(0), dry_run=False)
        refused.append(True)
        return batch_digests(*arguments)

    batch_digests = snapshots.batch_digests
    monkeypatch.setattr(snapshots, "batch_digests", gc_meanwhile)
    assert verify(lake, snapshots.create(lake)) == [] and refused


def test_an_import_that_contradicts_what_is_there_is_refused(tmp_path: Path):
    one, two = open_lake(tmp_path / "one"), open_lake(tmp_path / "two")
    for lake, title in ((one, "x"), (two, "y")):
        with lake.begin("stage", "1", derivation="d") as batch:
            batch.create("theme", "a", {"title": title})
    snapshots.create(one)
    with pytest.raises(ConflictError, match="already, with other content; import into an empty lake"):
        carry.import_from(two, one.uri)
    assert [row["title"] for row in open_lake(tmp_path / "two").read("themes")] == ["y"]


def test_an_import_from_a_place_without_snapshot_or_lake_says_so(tmp_path: Path, lake: Lake):
    fill(lake, 1)
    with pytest.raises(NotFoundError, match="has no snapshot; make one"):
        carry.import_from(open_lake(tmp_path / "other"), lake.uri)
    with pytest.raises(NotFoundError, match="no snapshot '123456'"):
        carry.export(lake, "123456", str(tmp_path / "other"))


def largest(folder: Path) -> Path:
    return max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize("what", ["blobs/packs", "blobs/objects", "events"])
def test_a_flipped_bit_is_found_and_nothing_damaged_is_carried_elsewhere(tmp_path: Path, what: str):
    lake = open_lake(tmp_path / "lake")
    fill(lake, 1, 2)
    snapshot = snapshots.create(lake)
    assert verify(lake, snapshot) == []
    pinned = {file["path"] for file in snapshots.manifest_of(lake, snapshot)["files"]}
    folder = tmp_path / "lake" / what
    damaged = folder / min(pinned) if what == "events" else largest(folder)
    flip(damaged)
    problems = verify(lake, snapshot)
    assert problems and damaged.name in "".join(problem.what + problem.why for problem in problems)
    with pytest.raises(DamagedError, match="damaged"):
        carry.export(lake, snapshot, str(tmp_path / "other"))
    assert open_lake(tmp_path / "other").read("batches") == []


@pytest.mark.parametrize("what", ["blobs/packs", "blobs/objects", "events"])
def test_a_missing_file_is_found(tmp_path: Path, what: str):
    lake = open_lake(tmp_path / "lake")
    fill(lake, 1, 2)
    snapshot = snapshots.create(lake)
    if what == "events":
        (tmp_path / "lake" / "events" / snapshots.manifest_of(lake, snapshot)["files"][0]["path"]).unlink()
    else:
        largest(tmp_path / "lake" / what).unlink()
    assert any("missing" in problem.why for problem in verify(lake, snapshot))


def test_a_forged_manifest_is_found(lake: Lake, monkeypatch):
    fill(lake, 1)
    snapshot = snapshots.create(lake)
    manifest = snapshots.manifest_of(lake, snapshot)
    manifest["tables"]["themes"]["sha256"] = "0" * 64
    monkeypatch.setattr(type(lake), "blob", lambda self, digest: json.dumps(manifest).encode())
    with pytest.raises(DamagedError, match="its manifest has another sha256"):
        snapshots.manifest_of(lake, snapshot)


def test_pins_survive_compaction_and_gc(lake: Lake):
    fill(lake, 1, 2)
    seen = everything(lake)
    snapshot = snapshots.create(lake)
    pinned = [f"events/{file['path']}" for file in snapshots.manifest_of(lake, snapshot)["files"]]
    for number in range(70):
        with lake.begin("s", f"{number}", derivation="d") as batch:
            batch.create("theme", f"x{number}", {"title": f"{number}"})
    assert len(lake.log.handle().file_uris()) < 64
    removed = gc(lake, grace=timedelta(0), dry_run=False)
    assert any(item.key.startswith("events/") for item in removed)
    assert all(map(lake.storage.exists, pinned))
    assert verify(lake, snapshot) == []
    assert everything(open_lake(lake.uri).at(snapshot)) == seen
    assert len(open_lake(lake.uri).read("themes")) == 72
