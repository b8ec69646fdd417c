"""A batch is committed once, whoever writes it, however often, and whenever its writer dies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from agent_world.lake import CommitError, DiskFullError, open_lake
from agent_world.lake.errors import DivergedError, LakeBusyError
from agent_world.lake.faults import KILL_AT
from agent_world.lake.log import EventLog
from agent_world.lake.proof import verify
from agent_world.lake.replay import replay
from agent_world.lake.snapshots import create
from lake_schemas import TABLES
from tests.lake.writer import write


def writer(uri: str, *arguments: object, kill_at: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.lake.writer", uri, *map(str, arguments)]
    environment = os.environ | ({KILL_AT: kill_at} if kill_at else {})
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def state(uri: str) -> dict[str, list]:
    """What the lake says, without when and in which order of commits."""
    volatile = {name: {c.name for c in spec.all_columns if c.volatile} for name, spec in TABLES.items()}
    lake = open_lake(uri)
    return {
        name: sorted(str({k: v for k, v in row.items() if k not in volatile[name]}) for row in lake.read(name))
        for name in TABLES
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    uri = str(tmp_path_factory.mktemp("undisturbed") / "lake")
    lake = open_lake(uri)
    for number in range(1, 7):
        write(lake, "a", number)
    return state(uri)


@pytest.mark.parametrize("kill_at", ["blob_write:6", "event_commit:4", "after_event_commit:3"])
def test_a_writer_killed_anywhere_and_started_again_ends_as_if_undisturbed(tmp_path: Path, undisturbed, kill_at: str):
    uri = str(tmp_path / "lake")
    killed = writer(uri, "a", 1, 6, kill_at=kill_at)
    acknowledged = killed.communicate()[0].split()
    assert killed.returncode == -9
    there = {row["partition"] for row in open_lake(uri).read("batches")}
    assert {f"a-{int(number):03}" for number in acknowledged} <= there
    again = writer(uri, "a", 1, 6)
    assert again.communicate()[0].split() == list("123456") and again.returncode == 0
    assert state(uri) == undisturbed
    assert all(result.same for result in replay(open_lake(uri), verify=True))
    lake = open_lake(uri)
    assert verify(lake, create(lake)) == []


def test_a_writer_killed_while_it_stores_projections_loses_nothing(tmp_path: Path):
    uri = str(tmp_path / "lake")
    killed = writer(uri, "a", 1, 40, kill_at="projection:3")
    killed.communicate()
    assert killed.returncode == -9
    lake = open_lake(uri)
    written = len(lake.read("batches"))
    assert written >= 30
    for number in range(1, 41):
        write(lake, "a", number)
    assert len(lake.read("themes")) == len(lake.read("costs")) == len(open_lake(uri).read("batches")) == 40
    assert all(result.same for result in replay(lake, verify=True))


def test_a_writer_killed_in_the_bucket_ends_as_if_undisturbed(s3: str, undisturbed):
    for kill_at in ("event_commit:3", "after_event_commit:3"):
        uri = f"{s3}/killed-{kill_at.replace(':', '-')}"
        killed = writer(uri, "a", 1, 6, kill_at=kill_at)
        killed.communicate()
        assert killed.returncode == -9
        lake = open_lake(uri)
        for number in range(1, 7):
            write(lake, "a", number)
        assert state(uri) == undisturbed


@pytest.mark.parametrize(("many", "each"), [(4, 4), pytest.param(8, 20, marks=pytest.mark.long)])
def test_appends_of_many_processes_all_land_exactly_once(uri: str, many: int, each: int):
    open_lake(uri)
    writers = [writer(uri, f"w{number}", 1, each) for number in range(many)]
    acknowledged = [process.communicate()[0].split() for process in writers]
    assert [process.returncode for process in writers] == [0] * many
    assert acknowledged == [[str(n) for n in range(1, each + 1)]] * many
    lake = open_lake(uri)
    batches = lake.read("batches")
    assert len(batches) == len({row["batch"] for row in batches}) == many * each
    assert len({row["commit_version"] for row in batches}) == many * each
    assert len(lake.read("themes")) == len(lake.read("costs")) == many * each
    events = lake.sql("SELECT count(*) AS n, count(DISTINCT event_id) AS ids FROM events").to_pylist()[0]
    assert events["n"] == events["ids"] == sum(row["events"] for row in batches)


def test_processes_that_write_the_same_batches_commit_each_once(tmp_path: Path):
    uri = str(tmp_path / "lake")
    open_lake(uri)
    writers = [writer(uri, f"w{number}", 1, 6, "same") for number in range(4)]
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    lake = open_lake(uri)
    assert len(lake.read("batches")) == len(lake.read("themes")) == len(lake.read("costs")) == 6
    assert lake.sql("SELECT count(*) AS n FROM events WHERE event_type = 'diverged'").to_pylist() == [{"n": 0}]


def test_a_duplicate_that_raced_is_skipped_when_it_made_the_same(lake):
    first = lake.begin("x", derivation="d")
    second = open_lake(lake.uri).begin("x", derivation="d")
    assert not first.done and not second.done
    with first, second:
        assert first.create("theme", "a", {"title": "t"}) == second.create("theme", "a", {"title": "t"})
    assert first.commit.fresh != second.commit.fresh
    assert len(lake.read("batches")) == len(lake.read("themes")) == 1


def test_a_second_content_for_one_derivation_sounds_the_alarm_and_overwrites_nothing(lake):
    first = lake.begin("x", derivation="d")
    second = open_lake(lake.uri).begin("x", derivation="d")
    with first:
        kept = first.create("theme", "a", {"title": "t"})
    with pytest.raises(DivergedError, match="other content for a: what made it is not deterministic"), second:
        lost = second.create("theme", "a", {"title": "u"})
    assert [row["version_id"] for row in lake.read("themes")] == [kept]
    [alarm] = lake.sql("SELECT version_id, payload FROM events WHERE event_type = 'diverged'").to_pylist()
    assert alarm["version_id"] == kept and lost.rpartition("@")[2] in alarm["payload"]


def test_work_that_is_done_again_and_gives_other_content_sounds_the_alarm(lake):
    for title in ("t", "t"):
        with lake.begin("x", derivation="d", run_id="r1") as batch:
            kept = batch.create("theme", "a", {"title": title})
    with pytest.raises(DivergedError), lake.begin("x", derivation="d", run_id="r2") as batch:
        assert batch.done
        batch.create("theme", "a", {"title": "u"})
    assert [row["version_id"] for row in lake.read("themes")] == [kept]
    assert lake.sql("SELECT version_id FROM events WHERE event_type = 'diverged'").to_pylist() == [{"version_id": kept}]


def test_a_lake_that_several_processes_make_at_once_is_one_lake(tmp_path: Path):
    uri = str(tmp_path / "lake")
    writers = [writer(uri, f"w{number}", 1, 1) for number in range(4)]
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    assert len(open_lake(uri).read("themes")) == 4


def test_a_commit_whose_reply_was_lost_is_read_back_and_not_written_twice(lake, monkeypatch):
    write_once, calls = EventLog._write, []

    def lose_the_reply(self, table, keys, events):
        write_once(self, table, keys, events)
        calls.append(keys)
        if len(calls) == 1:
            raise OSError("connection reset by peer")

    monkeypatch.setattr(EventLog, "_write", lose_the_reply)
    with lake.begin("x", derivation="d") as batch:
        batch.create("theme", "a", {"title": "t"})
    assert len(calls) == 1 and batch.commit.fresh is False
    assert len(open_lake(lake.uri).read("themes")) == len(lake.read("themes")) == 1


def test_compactions_of_two_writers_that_meet_leave_every_event_once(lake, monkeypatch):
    monkeypatch.setattr("agent_world.lake.log._COMPACT_AT", 3)
    other, sync = open_lake(lake.uri), lake.storage.sync
    for number in range(1, 4):
        write(lake, "a", number)

    def let_the_other_compact_first(*keys: str) -> None:
        monkeypatch.setattr(lake.storage, "sync", sync)
        write(other, "b", 1)
        sync(*keys)

    monkeypatch.setattr(lake.storage, "sync", let_the_other_compact_first)
    write(lake, "a", 4)
    rows = DeltaTable(f"{lake.uri}/events").to_pyarrow_table().column("event_id").to_pylist()
    assert len(rows) == len(set(rows)) == sum(row["events"] for row in open_lake(lake.uri).read("batches"))


def test_a_batch_is_safe_whatever_becomes_of_the_compaction_behind_it(lake, monkeypatch):
    monkeypatch.setattr("agent_world.lake.log._COMPACT_AT", 1)
    exclusive = lake.storage.exclusive

    def full(name: str):
        if name == "compact":
            raise DiskFullError(lake.uri, f"locks/{name}")
        return exclusive(name)

    monkeypatch.setattr(lake.storage, "exclusive", full)
    for number in range(3):
        write(lake, "a", number)
    assert len(open_lake(lake.uri).read("themes")) == 3
    with pytest.raises(DiskFullError):  # it is all that was asked for
        lake.log.compact()


def test_a_compaction_that_was_asked_for_and_is_not_done_says_why(lake):
    write(lake, "a", 1)
    with lake.storage.exclusive("compact"), pytest.raises(LakeBusyError, match="another compaction"):
        open_lake(lake.uri).log.compact()


def test_events_that_compactions_of_an_older_version_left_twice_are_read_once(lake):
    for number in range(1, 5):
        write(lake, "a", number)
    meeting = lake.log.handle(), lake.log.handle()
    write(lake, "a", 5)
    for stale in meeting:
        stale.optimize.compact()
    doubled, count = open_lake(lake.uri), lake.table("events").num_rows
    assert DeltaTable(f"{lake.uri}/events").to_pyarrow_table().num_rows > count
    assert doubled.table("events").equals(lake.table("events"))
    assert len(doubled.read("themes")) == 5
    assert all(result.same for result in replay(doubled, verify=True))


def test_a_store_that_keeps_failing_is_given_up_with_one_clear_sentence(lake, monkeypatch):
    def fail(self, table, keys, events):
        raise OSError("connection refused")

    monkeypatch.setattr(EventLog, "_write", fail)
    monkeypatch.setattr("agent_world.lake.log.time.sleep", lambda seconds: None)
    with pytest.raises(CommitError, match=r"not committed after 6 attempts: connection refused; run again to resume"):
        with lake.begin("x", derivation="d") as batch:
            batch.create("theme", "a", {"title": "t"})
    monkeypatch.undo()
    assert open_lake(lake.uri).read("themes") == []


def test_a_new_file_reaches_the_disk_before_the_batch_is_acknowledged(lake, monkeypatch):
    synced = []
    monkeypatch.setattr("agent_world.lake.storage._sync", lambda path: synced.append(str(path)))
    with lake.begin("x", derivation="d") as batch:
        batch.create("theme", "a", {"title": "t"}, files={"f": b"x"})
    folder = str(Path(lake.uri).absolute())
    assert any(path.endswith(".parquet") and "/events/" in path for path in synced)
    assert f"{folder}/events/_delta_log/{batch.commit.version:020}.json" in synced
    assert {f"{folder}/events", f"{folder}/events/_delta_log"} <= set(synced)
    assert any("/blobs/packs/" in path for path in synced)
