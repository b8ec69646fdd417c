"""Lakes of older versions are opened and lifted one version at a time; those of newer ones are refused."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from agent_world.lake import Lake, LakeFromNewerVersionError, open_lake, snapshots
from agent_world.lake.maintenance import compact
from agent_world.lake.proof import verify
from agent_world.lake.replay import replay
from lake_schemas import EVENTS, lifts
from lake_schemas.base import text
from tests.lake.old_lakes import FOLDER, said

ARCHIVES = sorted(FOLDER.glob("events-*.tar.xz"))


def unpacked(archive: Path, folder: Path) -> tuple[Lake, dict]:
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return open_lake(folder / "lake", create=False), json.loads((folder / "said.json").read_text())


def test_a_lake_of_every_version_up_to_today_is_kept():
    assert [archive.name for archive in ARCHIVES] == [f"events-{n}.tar.xz" for n in range(1, lifts.newest() + 1)]


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_an_old_lake_says_what_it_said_and_goes_on(archive: Path, tmp_path: Path):
    lake, then = unpacked(archive, tmp_path)
    now = said(lake)
    for name, rows in then["rows"].items():  # a table may have gained columns
        assert [{key: row[key] for key in old} for row, old in zip(now["rows"][name], rows, strict=True)] == rows
    assert now["files"] == then["files"]
    [snapshot] = snapshots.ids(lake)
    assert verify(lake, snapshot) == []
    with lake.begin("stage", "1", derivation="d") as batch:
        assert batch.done
    with lake.begin("stage", "new", derivation="d") as batch:
        batch.create("theme", "b", {"title": "new"})
    assert all(result.same for result in replay(lake, verify=True))
    assert [row["title"] for row in open_lake(lake.uri).read("themes")] == ["title 1", "title 2", "new"]
    assert verify(open_lake(lake.uri), snapshot) == []


def second(event_type: str, kind: str | None, payload: lifts.Payload) -> lifts.Payload:
    """Version 2: titles are written in capitals, costs count calls in tens, a verdict names its version."""
    if (event_type, kind) == ("created", "theme"):
        return {**payload, "title": payload["title"].upper()}
    if (event_type, kind) == ("recorded", "costs"):
        return {**payload, "calls": payload["calls"] * 10}
    if event_type == "observed" and "verdict" in payload:
        return {**payload, "verdict": f"{payload['verdict']}, lifted"}
    return payload


def third(event_type: str, kind: str | None, payload: lifts.Payload) -> lifts.Payload:
    """Version 3: it reads what version 2 says."""
    if (event_type, kind) == ("created", "theme"):
        return {**payload, "title": f"{payload['title']}!"}
    if (event_type, kind) == ("created", "trajectory"):
        return {**payload, "status": f"{len(payload['steps'])} steps"}
    return payload


@pytest.fixture
def old(tmp_path: Path) -> Lake:
    return unpacked(FOLDER / "events-1.tar.xz", tmp_path)[0]


def test_events_are_lifted_one_version_at_a_time_when_they_are_folded(old: Lake, monkeypatch):
    [snapshot] = snapshots.ids(old)
    monkeypatch.setattr(lifts, "LIFTS", [])
    lifts.LIFTS.append(second)
    lake = open_lake(old.uri)
    with lake.begin("stage", "v2", derivation="d") as batch:
        batch.create("theme", "b", {"title": "of two"})
    lifts.LIFTS.append(third)
    lake = open_lake(old.uri)
    with lake.begin("stage", "v3", derivation="d") as batch:
        batch.create("theme", "c", {"title": "of three"})
        batch.record("costs", {"stage": "s", "subject": "3", "calls": 3})
    fresh = open_lake(old.uri)
    assert [row["title"] for row in fresh.read("themes")] == ["TITLE 1!", "TITLE 2!", "of two!", "of three"]
    assert [row["verdict"] for row in fresh.read("themes")][:3] == ["verdict 1, lifted", "verdict 2, lifted", None]
    assert [row["calls"] for row in fresh.read("costs")] == [10, 20, 3]
    assert [row["status"] for row in fresh.read("trajectories")] == ["2 steps", "2 steps"]  # their payload is a blob
    assert fresh.payload(fresh.resolve("theme", "b"))["title"] == "of two!"
    assert [row["schema_version"] for row in fresh.read("events", where={"event_type": "created"})] == [1] * 5 + [2, 3]
    assert "of two!" not in "".join(row for row in fresh.table("events").column("payload").to_pylist() if row)
    assert all(result.same for result in replay(fresh, verify=True))
    wrong = {problem.what for problem in verify(fresh, snapshot)}
    assert not any(what.startswith(("batch", "events", "blobs")) for what in wrong)


def test_a_lake_of_a_newer_version_is_refused_with_the_release_it_needs(old: Lake, monkeypatch):
    monkeypatch.setattr(lifts, "LIFTS", [second, third])
    with open_lake(old.uri).begin("stage", "new", derivation="d", code_version="0.9.1+abc") as batch:
        batch.create("theme", "b", {"title": "t"})
    monkeypatch.setattr(lifts, "LIFTS", [second])
    needed = r"has event schema 3, this version reads up to 2; upgrade agent-world to 0\.9\.1\+abc or newer"
    with pytest.raises(LakeFromNewerVersionError, match=needed):
        open_lake(old.uri).read("themes")


def test_events_gain_a_column_and_old_ones_and_their_digests_stay(old: Lake, monkeypatch):
    [snapshot] = snapshots.ids(old)
    monkeypatch.setattr(lifts, "LIFTS", [second])
    more = replace(text("host_kind", "what wrote it"), since=2)
    spec = replace(EVENTS, columns=(*EVENTS.columns, more))
    schema = pa.schema([pa.field(column.name, column.type) for column in spec.all_columns])
    for module in ("log", "digest", "view"):
        monkeypatch.setattr(f"agent_world.lake.{module}.EVENTS", spec)
    for module in ("log", "batch"):
        monkeypatch.setattr(f"agent_world.lake.{module}.SCHEMA", schema)
    lake = open_lake(old.uri)
    with lake.begin("stage", "new", derivation="d") as batch:
        batch._emit("recorded", kind="costs", payload={"stage": "s", "subject": "9", "calls": 9}, host_kind="loom")
    lake = open_lake(old.uri)
    compact(lake)
    fresh = open_lake(old.uri)
    kinds = fresh.table("events").column("host_kind").to_pylist()
    assert set(kinds[:-2]) == {None} and kinds[-2:] == ["loom", None]
    assert not any(problem.what.startswith(("batch", "events")) for problem in verify(fresh, snapshot))
    assert verify(fresh, snapshots.create(fresh)) == []
