"""Folding is the same in one go or in many steps, from nothing or from a stored projection."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_world.lake import Lake, LakeBusyError, open_lake
from agent_world.lake.digest import batch_digests, table_digest
from agent_world.lake.replay import replay
from lake_schemas import TABLES
from lake_schemas.base import TableSpec, integer, text

NAMES = st.sampled_from(["a", "b", "ü"])
TITLES = st.sampled_from(["one", "two", "three"])

ACTIONS = st.one_of(
    st.tuples(st.just("create"), NAMES, TITLES),
    st.tuples(st.just("observe"), NAMES, TITLES),
    st.tuples(st.just("retire"), NAMES, st.none()),
    st.tuples(st.just("record"), NAMES, TITLES),
    st.tuples(st.just("store"), NAMES, TITLES),
)
BATCHES = st.lists(
    st.tuples(st.lists(ACTIONS, max_size=4), st.sampled_from(["", "read", "refresh", "reopen"])), min_size=1, max_size=6
)


SPEC = TableSpec(
    name="s", shape="derived", meaning="m", key=("x",), columns=(text("x", "a text"), integer("y", "a number"))
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def fill(path: Path, batches: list) -> Lake:
    """A lake in which `batches` happened, while readers read and projections were stored now and then."""
    shutil.rmtree(path, ignore_errors=True)
    lake = open_lake(path)
    made: dict[str, str] = {}
    for number, (actions, then) in enumerate(batches):
        with lake.begin("stage", derivation=str(number), run_id="run", code_version="1") as batch:
            for what, name, value in actions:
                if what == "create":
                    parents = [(v, "p") for n, v in sorted(made.items()) if n != name]
                    made[name] = batch.create("theme", name, {"title": value, "tools": [value]}, parents=parents)
                elif what == "observe" and name in made:
                    batch.observe(made[name], {"verdict": value, "match_score": len(value) / 3})
                elif what == "retire" and name in made:
                    batch.retire(made[name], "because")
                elif what == "record":
                    batch.record("costs", {"stage": name, "subject": value, "calls": number})
                elif what == "store":
                    batch.put({name: value.encode()})
        if then == "read":
            lake.read("themes")
        elif then == "refresh":
            lake.refresh()
        elif then == "reopen":
            lake = open_lake(path)
    return lake


def digests(lake: Lake) -> dict[str, str]:
    return {name: table_digest(spec, lake.table(name), volatile=True) for name, spec in TABLES.items()}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES)
def test_folding_step_by_step_gives_what_folding_at_once_gives(folder: Path, batches):
    lake = fill(folder / "lake", batches)
    at_once = open_lake(folder / "lake").at(lake.events_version())
    assert [lake.read(name) for name in TABLES] == [at_once.rows(name) for name in TABLES]
    said = {
        (name, value): number
        for number, (actions, _) in enumerate(batches)
        for what, name, value in actions
        if what == "record"
    }
    assert {(row["stage"], row["subject"]): row["calls"] for row in lake.read("costs")} == said
    assert len(lake.read("costs")) == len(said)  # of each key the newest


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES)
def test_replay_finds_every_table_as_readers_saw_it_and_moves_nothing(folder: Path, batches):
    lake = fill(folder / "lake", batches)
    before = digests(lake)
    assert all(result.same for result in replay(lake, verify=True))
    assert digests(open_lake(folder / "lake")) == before


ROWS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.integers(-5, 5)), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, seed=st.integers(0, 2**32))
def test_row_order_does_not_change_a_digest_and_a_changed_cell_does(rows, seed):
    def digest(rows: list) -> str:
        table = pa.table({"x": [x for x, _ in rows], "y": [y for _, y in rows]}, schema=SPEC.arrow)
        return table_digest(SPEC, table, volatile=True)

    assert digest(Random(seed).sample(rows, len(rows))) == digest(rows)
    assert digest([(rows[0][0] + "x", rows[0][1]), *rows[1:]]) != digest(rows)
    assert digest([*rows, rows[0]]) != digest(rows)


def test_logical_digests_leave_out_when_where_and_which_run(tmp_path: Path):
    def made(run: str) -> Lake:
        lake = open_lake(tmp_path / run)
        with lake.begin("s", derivation="d", run_id=run, code_version="1") as batch:
            batch.create("theme", "a", {"title": "t"}, files={"f": b"x" * 100})
            batch.record("costs", {"stage": "s", "wall_s": float(len(run))})
        return lake

    one, two = made("one"), made("another")
    for name, spec in TABLES.items():
        digests_of_both = {table_digest(spec, lake.table(name), volatile=False) for lake in (one, two)}
        assert len(digests_of_both) == 1, name
    assert table_digest(TABLES["themes"], one.table("themes"), volatile=True) != digests(two)["themes"]


def test_a_stored_projection_that_was_tampered_with_is_found_and_healed(tmp_path: Path):
    lake = fill(tmp_path / "lake", [([("create", "a", "one"), ("create", "b", "two")], "refresh")])
    path = tmp_path / "lake" / "projections" / str(lake.projections.generation()) / "themes"
    stored = DeltaTable(path)
    stored.update(updates={"title": "'forged'"}, predicate="artifact_id = 'a'")
    results = {result.table: result for result in replay(lake, verify=True)}
    assert [name for name, result in results.items() if not result.same] == ["themes"]
    assert [row["title"] for row in open_lake(tmp_path / "lake").read("themes")] == ["one", "two"]
    assert all(result.same for result in replay(lake, verify=True))


def test_a_projection_carries_the_version_it_was_folded_through_and_readers_fold_the_tail(tmp_path: Path):
    lake = fill(tmp_path / "lake", [([("create", "a", "one")], "refresh")])
    stored = lake.projections.base("themes")
    assert stored.folded_through == lake.events_version() and stored.table.num_rows == 1
    with lake.begin("stage", derivation="more") as batch:
        batch.create("theme", "b", {"title": "two"})
    assert lake.projections.base("themes").table.num_rows == 1
    assert len(open_lake(tmp_path / "lake").read("themes")) == 2


def test_other_engines_find_every_projection_as_a_plain_delta_table(tmp_path: Path):
    lake = fill(tmp_path / "lake", [([("create", "a", "one")], "refresh")])
    for name in TABLES:
        table = DeltaTable(tmp_path / "lake" / "projections" / str(lake.projections.generation()) / name)
        assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
        assert not table.metadata().partition_columns
        assert table.to_pyarrow_table().num_rows == lake.table(name).num_rows


def test_the_events_are_append_only_and_plain_for_every_engine(tmp_path: Path):
    lake = fill(tmp_path / "lake", [([("create", "a", "one")], "")])
    table = DeltaTable(tmp_path / "lake" / "events")
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    with pytest.raises(Exception, match=r"append.?only"):
        table.delete()
    assert [row["event_type"] for row in lake.read("events")] == ["created", "committed"]
    assert table.transaction_version(lake.read("batches")[0]["batch"]) == 1


def test_a_projection_has_one_writer_at_a_time(tmp_path: Path):
    lake = fill(tmp_path / "lake", [([("create", "a", "one")], "refresh"), ([("create", "b", "two")], "")])
    name = f"projection-{lake.projections.generation()}-themes"
    with open_lake(tmp_path / "lake").storage.exclusive(name) as held:
        assert held and "themes" not in lake.refresh()
    assert "themes" in lake.refresh()


def test_a_second_replay_at_the_same_time_is_refused(tmp_path: Path):
    lake = fill(tmp_path / "lake", [([("create", "a", "one")], "")])
    with lake.storage.exclusive("replay"), pytest.raises(LakeBusyError, match="another replay is at work"):
        replay(lake)


def test_a_stored_projection_of_another_fold_or_schema_is_folded_anew(tmp_path: Path):
    fill(tmp_path / "lake", [([("create", "a", "one")], "refresh")])
    pointer = tmp_path / "lake" / "projections" / "current.json"
    pointer.write_text(json.dumps(json.loads(pointer.read_text()) | {"fold": 0}))
    fresh = open_lake(tmp_path / "lake")
    assert fresh.projections.base("themes") is None
    assert [row["title"] for row in fresh.read("themes")] == ["one"]
    fresh.refresh()
    assert fresh.projections.base("themes").table.num_rows == 1


def test_payloads_that_are_decoded_in_several_goes_make_the_same_table(tmp_path: Path, monkeypatch):
    lake = open_lake(tmp_path / "lake")
    with lake.begin("s", derivation="d") as batch:
        for number in range(7):
            row = {"title": f"{number}"} if number < 3 else {"licence": f"{number}"}  # columns come and go
            theme = batch.create("theme", f"t{number}", row)
            batch.observe(theme, {"match_score": float(number)})
            batch.record("costs", {"stage": "s", "subject": theme} | ({"calls": number} if number % 2 else {}))
    lake.refresh()
    monkeypatch.setattr("agent_world.lake.fold._DECODED", 2)
    assert all(table.same for table in replay(lake, verify=True))
    assert [row["calls"] for row in open_lake(lake.uri).read("costs")] == [None, 1, None, 3, None, 5, None]


def test_compaction_keeps_the_order_of_events(tmp_path: Path):
    lake = open_lake(tmp_path / "lake")
    for number in range(70):
        with lake.begin("s", f"{number}", derivation="d") as batch:
            batch.create("theme", "a", {"title": f"{number}"})
    assert len(DeltaTable(tmp_path / "lake" / "events").file_uris()) < 64
    fresh = open_lake(tmp_path / "lake").at(lake.events_version())
    assert [(row["title"], row["rev"]) for row in fresh.rows("themes")] == [(str(n), n + 1) for n in range(70)]
    assert [batch.batch for batch in batch_digests(fresh.table("events"))] == [r["batch"] for r in lake.read("batches")]
