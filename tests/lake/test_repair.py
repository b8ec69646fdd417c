"""A damaged lake says what is wrong; what can be made anew is, the rest is moved aside and named."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from agent_world.lake import DamagedError, Lake, LakeBusyError, LakeFromNewerVersionError, open_lake
from agent_world.lake.faults import KILL_AT
from agent_world.lake.repair import Repaired, repair
from agent_world.lake.storage import open_storage
from dagster_project.cli import cli
from lake_schemas import TABLES
from tests.lake.batches import fill, flip

_REPAIR = (
    "import sys; from agent_world.lake.repair import repair; from agent_world.lake.storage import open_storage;"
    "repair(open_storage(sys.argv[1]), dry_run=False)"
)


def said(lake: Lake) -> dict[str, list]:
    """Everything the lake says, in order, apart from the repair itself."""
    rows = {name: lake.read(name) for name in TABLES if name not in ("quarantine", "batches")}
    batches = [row for row in lake.read("batches") if row["stage"] != "repair"]
    return rows | {"batches": batches, "files": [lake.files(row["version_id"]) for row in lake.read("themes")]}


def tree(path: Path) -> dict[str, str]:
    files = [file for file in path.rglob("*") if file.is_file() and "locks" not in file.parts]
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def commit(path: Path, version: int) -> Path:
    return path / "events" / "_delta_log" / f"{version:020}.json"


def data_of(path: Path, version: int) -> Path:
    """The data file that came with a version."""
    adds = [json.loads(line) for line in commit(path, version).read_text().splitlines()]
    [added] = [entry["add"]["path"] for entry in adds if "add" in entry]
    return path / "events" / added


def tear(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])


def mend(path: Path, **options) -> Repaired:
    """As the command does it: first a look, which changes nothing and says the same."""
    before = tree(path)
    looked = repair(open_storage(path), **options)
    assert tree(path) == before
    done = repair(open_storage(path), dry_run=False, **options)
    assert done.lines == looked.lines
    after = tree(path)
    kept = set(after.values())
    gone = [name for name, digest in before.items() if digest not in kept]
    assert gone in ([], ["projections/current.json"])  # it names the generation in use; nothing else ever goes
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = open_lake(tmp_path_factory.mktemp("made") / "lake")
    fill(lake, 1, 4)
    lake.refresh()
    fill(lake, 5, 5)
    return Path(lake.uri)


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "lake"))


def damaged_marker(path: Path) -> None:
    (path / "lake.json").write_text("{")


def flipped_marker(path: Path) -> None:
    (path / "lake.json").write_bytes((path / "lake.json").read_bytes().replace(b"agent", b"agenu"))


def last_checkpoint(path: Path) -> None:
    (path / "events" / "_delta_log" / "_last_checkpoint").write_text('{"version": 3, "size": 9}')


def torn_checkpoint(path: Path) -> None:
    DeltaTable(path / "events").create_checkpoint()
    [checkpoint] = (path / "events" / "_delta_log").glob("*.checkpoint.parquet")
    tear(checkpoint)


def compacted(path: Path) -> None:
    DeltaTable(path / "events").optimize.compact()
    tear(data_of(path, 6))


def pointer(path: Path) -> None:
    (path / "projections" / "current.json").write_text("{")


def projection(path: Path) -> None:
    [file] = next((path / "projections").glob("*/themes")).glob("*.parquet")
    tear(file)


REBUILT: dict[str, Callable[[Path], object]] = {
    "lake.json cannot be read": damaged_marker,
    "one bit of lake.json is flipped": flipped_marker,
    "the marker is gone": lambda path: (path / "lake.json").unlink(),
    "the last checkpoint is not there": last_checkpoint,
    "a torn checkpoint": torn_checkpoint,
    "the last commit is torn": lambda path: tear(commit(path, 5)),
    "the last commit is empty": lambda path: commit(path, 5).write_bytes(b""),
    "a commit in the middle is missing": lambda path: commit(path, 3).unlink(),
    "a commit in the middle is torn": lambda path: tear(commit(path, 2)),
    "two commits are missing": lambda path: [commit(path, version).unlink() for version in (2, 4)],
    "the first commit is missing": lambda path: commit(path, 0).unlink(),
    "the schema of the table is changed": lambda path: commit(path, 0).write_bytes(
        commit(path, 0).read_bytes().replace(b'\\"long\\"', b'\\"lonk\\"', 1)
    ),
    "a compacted data file is damaged": compacted,
    "the pointer to the projections cannot be read": pointer,
    "a projection is torn": projection,
}


@pytest.mark.parametrize("what", REBUILT)
def test_what_follows_from_the_events_is_made_anew(path: Path, made: Path, what: str):
    REBUILT[what](path)
    done = mend(path)
    assert done.lines and not any(line.lost for line in done.lines)
    lake = open_lake(path)
    assert said(lake) == said(open_lake(made))
    assert repair(open_storage(path)).lines == []
    fill(lake, 6, 6)
    assert len(open_lake(path).read("themes")) == 6
    with lake.begin("stage", "2", derivation="d") as batch:
        assert batch.done


def test_a_whole_lake_needs_nothing_and_what_dead_writers_left_is_not_taken_for_a_batch(path: Path):
    writer = "import sys; from tests.lake.batches import fill; from agent_world.lake import open_lake;"
    command = [sys.executable, "-c", f"{writer} fill(open_lake(sys.argv[1]), 7, 7)", str(path)]
    dead = subprocess.run(command, env=os.environ | {KILL_AT: "event_commit:1"}, check=False)
    assert dead.returncode == -signal.SIGKILL
    shutil.copy(data_of(path, 5), path / "events" / "part-orphan.parquet")
    found = mend(path)
    assert (found.lines, found.batches, found.aside) == ([], 5, None)
    assert len(open_lake(path).read("batches")) == 5


def test_events_without_a_copy_are_named_as_lost_and_the_work_can_be_done_again(path: Path, made: Path):
    tear(data_of(path, 3))
    with pytest.raises(DamagedError, match="lake repair"):
        open_lake(path).at(5).rows("costs")
    done = mend(path)
    [lost] = [line for line in done.lines if line.what.startswith("1 batches")]
    whole = open_lake(made)
    batch = next(row["batch"] for row in whole.read("batches") if row["partition"] == "3")
    assert lost.lost and batch[:12] in lost.what
    lake = open_lake(path)
    assert [row["title"] for row in lake.read("themes")] == ["1", "2", "4", "5"]
    assert [row["item"] for row in lake.read("quarantine")] == [line.what for line in done.lines]
    assert repair(open_storage(path)).lines == [lost]
    fill(lake, 3, 3)
    assert sorted(row["title"] for row in open_lake(path).read("themes")) == ["1", "2", "3", "4", "5"]
    assert repair(open_storage(path)).lines == []


def test_rows_that_read_well_but_are_not_what_their_ids_say_are_found(path: Path):
    other = Path(shutil.copytree(path, path.with_name("other")))
    lake = open_lake(other)
    with lake.begin("stage", "6", derivation="d") as batch:
        batch.create("theme", "b", {"title": "right"})
    rows = DeltaTable(other / "events").to_pyarrow_table(filters=[("commit_version", "=", lake.events_version())])
    forged = [text and text.replace("right", "wrong") for text in rows.column("payload").to_pylist()]
    place = rows.schema.get_field_index("payload")
    pq.write_table(rows.set_column(place, "payload", pa.array(forged)), data_of(other, lake.events_version()))
    found = repair(open_storage(other))
    assert [line.why for line in found.lines if "is not what its id says" in line.why]


def test_versions_made_from_one_that_is_lost_are_named(tmp_path: Path):
    lake = open_lake(tmp_path / "lake")
    with lake.begin("one", derivation="d") as batch:
        theme = batch.create("theme", "a", {"title": "t"})
    with lake.begin("two", derivation="d") as batch:
        database = batch.create("database", "b", {"round": 0}, parents=[(theme, "theme")])
    data_of(tmp_path / "lake", 1).unlink()
    [line] = [line for line in mend(tmp_path / "lake").lines if database in line.what]
    assert line.lost and "what they were made from is lost" in line.why


def test_what_is_lost_comes_back_from_an_export_as_it_was(path: Path, made: Path, tmp_path: Path):
    from agent_world.lake import carry, snapshots

    lake = open_lake(path)
    carry.export(lake, snapshots.create(lake), str(tmp_path / "backup"))
    whole = said(lake)
    flip(data_of(path, 3))
    data_of(path, 4).unlink()
    for file in [*(path / "blobs" / "objects").rglob("*.zstd")][:2]:
        flip(file)
    [row] = lake.read("snapshots")
    place = lake.blobs.place(row["manifest_blob"])
    assert place is not None
    (path / place.pack).unlink()  # nothing here says any more which bytes the events had
    flip(next(file for file in (path / "blobs" / "packs").rglob("*") if file.is_file()))
    done = mend(path, backup=open_lake(tmp_path / "backup", create=False))
    assert not any(line.lost for line in done.lines) and len(done.lines) >= 7
    assert said(open_lake(path)) == whole


def test_damaged_blobs_are_moved_aside_and_what_needs_them_is_named(path: Path):
    lake = open_lake(path)
    [theme] = lake.read("themes", where={"title": "2"})
    leaves = {leaf.path: leaf.sha256 for leaf in lake.tree(theme["blob_root"])}
    place = lake.blobs.place(leaves["large"])
    assert place is not None
    flip(path / place.pack)
    [line] = mend(path).lines
    assert (line.what, line.lost) == (place.pack, True) and theme["version_id"] in line.why and "--from" in line.cure
    fresh = open_lake(path)
    assert not fresh.storage.exists(place.pack) and fresh.storage.exists(f"quarantine/0001/{place.pack}")
    with pytest.raises(DamagedError, match="the file is missing"):
        fresh.files(theme["version_id"])
    assert len(fresh.files(fresh.read("themes", where={"title": "3"})[0]["version_id"])) == 2


def test_a_pack_of_which_most_is_whole_stays_and_its_whole_blobs_are_read(path: Path):
    lake = open_lake(path)
    [theme] = lake.read("themes", where={"title": "2"})
    small = next(leaf.sha256 for leaf in lake.tree(theme["blob_root"]) if leaf.path == "small")
    place = lake.blobs.place(small)
    assert place is not None
    data = bytearray((path / place.pack).read_bytes())
    data[place.offset + place.stored_bytes - 1] ^= 1
    (path / place.pack).write_bytes(data)
    [line] = mend(path).lines
    assert line.what == place.pack and theme["version_id"] in line.why and "stays" in line.cure
    assert lake.payload(lake.resolve("trajectory", "t2"))["steps"][1] == 2  # its payload lies in the same pack


def test_a_repair_that_is_killed_anywhere_loses_nothing_and_the_next_one_finishes(path: Path, made: Path):
    tear(commit(path, 5))
    commit(path, 3).unlink()
    projection(path)
    damaged_marker(path)
    command = [sys.executable, "-c", _REPAIR, str(path)]
    for point in (1, 2, 3):
        done = subprocess.run(command, env=os.environ | {KILL_AT: f"repair:{point}"}, check=False)
        assert done.returncode == -signal.SIGKILL or point == 3
    assert not any(line.lost for line in repair(open_storage(path), dry_run=False).lines)
    assert said(open_lake(path)) == said(open_lake(made))
    assert repair(open_storage(path)).lines == []


def test_a_repair_waits_for_no_batch_and_refuses_a_newer_lake(path: Path):
    with open_lake(path).begin("x", derivation="d"), pytest.raises(LakeBusyError, match="a batch is in flight"):
        repair(open_storage(path), dry_run=False)
    (path / "lake.json").write_text('{"format": 9, "lake": "agent-world"}')
    with pytest.raises(LakeFromNewerVersionError):
        repair(open_storage(path))


def test_the_command_says_what_is_wrong_changes_nothing_and_repairs_when_told(path: Path):
    run = CliRunner()
    assert run.invoke(cli, ["lake", "repair", "--lake", str(path)]).exit_code == 0
    tear(commit(path, 5))
    found = run.invoke(cli, ["sql", "SELECT count(*) FROM themes", "--lake", str(path)])
    assert commit(path, 5).name in str(found.exception) and "lake repair" in str(found.exception)
    looked = run.invoke(cli, ["lake", "repair", "--lake", str(path)])
    assert looked.exit_code == 1 and commit(path, 5).name in looked.output and "Nothing was changed" in looked.stderr
    assert run.invoke(cli, ["lake", "repair", "--apply", "--lake", str(path)]).exit_code == 0
    done = run.invoke(cli, ["sql", "SELECT count(*) AS n FROM themes", "--lake", str(path), "--format", "json"])
    assert json.loads(done.output) == [{"n": 5}]
