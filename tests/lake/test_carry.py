"""A snapshot that is carried elsewhere arrives whole or not at all, and a transfer that was stopped goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_world.lake import DamagedError, Lake, carry, open_lake, snapshots
from agent_world.lake.faults import KILL_AT
from agent_world.lake.proof import verify
from agent_world.lake.storage import open_storage
from lake_schemas import TABLES
from tests.lake.batches import fill

_EXPORT = (
    "import sys; from agent_world.lake import carry, open_lake;carry.export(open_lake(sys.argv[1]), *sys.argv[2:])"
)


def killed_export(lake: Lake, snapshot: str, there: str, at: str) -> None:
    environment = os.environ | {KILL_AT: at}
    command = [sys.executable, "-c", _EXPORT, lake.uri, snapshot, there]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL


def blobs(lake: Lake) -> dict[str, bytes]:
    return {item.key: lake.storage.read(item.key) for item in lake.storage.list("blobs") if "aside" not in item.key}


@pytest.mark.parametrize("at", ["carry:1", "carry:4", "carried:3", "event_commit:1", "after_event_commit:1"])
def test_an_export_that_was_killed_shows_nothing_and_the_next_one_sends_only_the_rest(tmp_path: Path, at: str):
    lake, there = open_lake(tmp_path / "lake"), str(tmp_path / "there")
    fill(lake, 1, 3)
    snapshot = snapshots.create(lake)
    killed_export(lake, snapshot, there, at)
    seen = open_lake(there).read("batches")
    assert bool(seen) == (at == "after_event_commit:1")
    landed = {item.key for item in open_lake(there).storage.list("blobs") if "aside" not in item.key}
    wanted = {row["pack"] for row in lake.read("blobs", at=snapshot)}
    carried = carry.export(lake, snapshot, there)
    assert carried.sent_files == len(wanted - landed) and carried.found_files == len(wanted & landed)
    assert carried.sent_bytes == sum(lake.storage.read(key).__len__() for key in wanted - landed)
    assert verify(open_lake(there), snapshot) == []
    again = carry.export(lake, snapshot, there)
    assert (again.sent_files, again.sent_bytes, again.found_files) == (0, 0, len(wanted))


@pytest.mark.parametrize("what", ["half written", "flipped", "other bytes of the same length"])
def test_a_file_that_lies_there_is_trusted_only_when_its_hash_says_so(tmp_path: Path, what: str):
    lake, there = open_lake(tmp_path / "lake"), open_lake(tmp_path / "there")
    fill(lake, 1, 2)
    snapshot = snapshots.create(lake)
    for number, (key, data) in enumerate(blobs(lake).items()):
        other = {"half written": data[: len(data) // 2], "flipped": bytes([data[0] ^ 1]) + data[1:]}
        if number % 2:
            there.storage.write(key, other.get(what, b"?" * len(data)))
    carry.export(lake, snapshot, there.uri)
    assert verify(open_lake(there.uri), snapshot) == []
    assert {key: data for key, data in blobs(lake).items() if key in blobs(there)}.items() <= blobs(there).items()


def test_an_export_heals_what_was_damaged_there_since(tmp_path: Path):
    lake, there = open_lake(tmp_path / "lake"), str(tmp_path / "there")
    fill(lake, 1, 2)
    snapshot = snapshots.create(lake)
    carry.export(lake, snapshot, there)
    damaged = max((tmp_path / "there" / "blobs" / "objects").rglob("*.zstd"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert verify(open_lake(there), snapshot)
    assert carry.export(lake, snapshot, there).sent_files == 1
    assert verify(open_lake(there), snapshot) == []


def test_a_file_that_is_damaged_at_the_source_stops_the_transfer_and_is_named(tmp_path: Path):
    lake, there = open_lake(tmp_path / "lake"), str(tmp_path / "there")
    fill(lake, 1, 1)
    snapshot = snapshots.create(lake)
    [damaged] = (tmp_path / "lake" / "blobs" / "objects").rglob("*.zstd")
    damaged.write_bytes(bytes([damaged.read_bytes()[0] ^ 1]) + damaged.read_bytes()[1:])
    with pytest.raises(DamagedError, match=damaged.name):
        carry.export(lake, snapshot, there)
    assert open_lake(there).read("batches") == []
    assert not any(item.key.endswith(damaged.name) for item in open_lake(there).storage.list())


def test_a_file_written_piece_by_piece_is_seen_whole_or_not_at_all(uri: str):
    storage = open_storage(uri)
    parts = [bytes([number]) * (3 << 20) for number in range(6)]
    storage.write_from("a/large", iter(parts))
    assert storage.read("a/large") == b"".join(parts)

    def broken() -> Iterator[bytes]:
        yield from parts
        raise ValueError("the source is damaged")

    for key in ("a/large", "a/new"):
        with pytest.raises(ValueError, match="the source is damaged"):
            storage.write_from(key, broken())
    assert [(item.key, item.size) for item in storage.list()] == [("a/large", 18 << 20)]


def test_progress_is_told_up_to_the_whole(tmp_path: Path):
    lake, told = open_lake(tmp_path / "lake"), []
    fill(lake, 1, 2)
    snapshot = snapshots.create(lake)
    carry.export(lake, snapshot, str(tmp_path / "there"), on_progress=lambda *step: told.append(step))
    last = {part: (done, of) for part, done, of in told}
    assert {part for part, (done, of) in last.items() if done == of > 0} == {"events", "blobs", "tables"}
    assert last["blobs"][1] == sum(map(len, blobs(open_lake(tmp_path / "there")).values())) - len(
        lake.storage.read(next(r["pack"] for r in lake.read("blobs") if r["sha256"] == snapshot))
    )


def test_a_growing_lake_is_exported_again_and_only_what_is_new_is_sent(tmp_path: Path, s3: str):
    lake, there = open_lake(tmp_path / "lake"), f"{s3}/grown"
    fill(lake, 1, 2)
    first = carry.export(lake, snapshots.create(lake), there)
    fill(lake, 3, 3)
    snapshot = snapshots.create(lake)
    second = carry.export(lake, snapshot, there)
    assert second.found_files > first.sent_files > second.sent_files == 2  # the first manifest is there
    assert verify(open_lake(there), snapshot) == []


def test_every_table_is_seen_as_it_was_pinned_here_and_elsewhere_and_stored_for_other_engines(tmp_path: Path):
    lake = open_lake(tmp_path / "lake")
    fill(lake, 1, 2)
    pinned = {name: lake.read(name) for name in TABLES}
    snapshot = snapshots.create(lake)
    fill(lake, 3, 3)
    carry.export(lake, snapshot, str(tmp_path / "there"))
    there = open_lake(tmp_path / "there")
    for name, spec in TABLES.items():
        kept = [column.name for column in spec.all_columns if not column.volatile]
        for view in (lake.at(snapshot), there.at(snapshot)):
            assert view.rows(name, columns=kept) == [{k: row[k] for k in kept} for row in pinned[name]], name
            [counted] = view_sql(view, f"SELECT count(*) AS n FROM {name}")
            assert counted["n"] == len(pinned[name]), name
        stored = there.projections.base(name)
        assert stored is not None and stored.table.num_rows == len(there.read(name)), name


def view_sql(view, query: str) -> list[dict]:
    from agent_world.lake.sql import run

    return run(query, view).to_pylist()
