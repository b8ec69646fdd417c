"""What every lake does, in a directory and in a bucket on a real S3 server."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_world.identity import content_hash, version_id
from agent_world.lake import (
    BadRowError,
    LakeFromNewerVersionError,
    NotALakeError,
    NotFoundError,
    open_lake,
)
from agent_world.lake.batch import INLINE_BYTES


def test_what_a_batch_made_is_there_for_every_reader_after_the_commit(uri: str):
    lake = open_lake(uri)
    with lake.begin("themes", "a", derivation="d", run_id="r1") as batch:
        theme = batch.create("theme", "trains", {"title": "Zürich", "tools": [{"name": "x"}], "extra": [1]})
        batch.observe(theme, {"verdict": "matched", "match_score": 0.5})
        batch.record("costs", {"stage": "themes", "subject": theme, "cpu_s": 1.5, "tokens": 3})
        assert lake.read("themes") == []
        assert batch.payload(theme)["title"] == "Zürich"

    for reader in (lake, open_lake(uri, create=False)):
        [row] = reader.read("themes")
        assert row["version_id"] == theme == version_id("trains", content_hash("theme", reader.payload(theme)))
        assert (row["title"], row["tools"]) == ("Zürich", [{"name": "x"}])
        assert (row["verdict"], row["match_score"]) == ("matched", 0.5)
        assert (row["rev"], row["state"], row["run_id"], row["partition"]) == (1, "created", "r1", "a")
        assert reader.payload(theme) == {"title": "Zürich", "tools": [{"name": "x"}], "extra": [1]}
        assert [(c["subject"], c["cpu_s"], c["tokens"]) for c in reader.read("costs")] == [(theme, 1.5, 3)]
        assert reader.events_version() == lake.events_version()


def test_files_come_back_byte_for_byte_small_and_large(uri: str):
    lake = open_lake(uri)
    files = {"data.sqlite": bytes(range(256)) * 8_000, "documents/a.json": b"{}", "documents/empty.txt": b""}
    with lake.begin("databases", derivation="d") as batch:
        database = batch.create("database", "db", {"round": 0}, files=files)
    assert lake.files(database) == open_lake(uri).files(database) == files


def test_a_payload_above_the_inline_limit_is_a_blob_and_reads_the_same(uri: str):
    lake = open_lake(uri)
    steps = [{"text": "é" * 1_000, "n": n} for n in range(60)]
    with lake.begin("rollouts", derivation="d") as batch:
        trajectory = batch.create("trajectory", "t", {"steps": steps, "status": "pass"})
    [event] = lake.sql(f"SELECT * FROM events WHERE version_id = '{trajectory}'").to_pylist()
    assert event["payload"] is None and event["payload_blob"] is not None
    assert len(json.dumps(steps).encode()) > INLINE_BYTES
    reader = open_lake(uri)
    assert reader.read("trajectories")[0]["steps"] == steps == reader.payload(trajectory)["steps"]


def test_leaving_a_batch_with_an_exception_leaves_nothing_to_see(uri: str):
    lake = open_lake(uri)
    with pytest.raises(RuntimeError), lake.begin("themes", derivation="d") as batch:
        batch.create("theme", "a", {"title": "a"}, files={"f": b"x"})
        raise RuntimeError
    assert open_lake(uri).read("themes") == [] == lake.read("blobs")
    with lake.begin("themes", derivation="d") as batch:
        assert not batch.done


def test_a_batch_is_committed_once_and_says_what_it_made(uri: str):
    lake = open_lake(uri)
    with lake.begin("themes", "p", derivation="d") as batch:
        theme = batch.create("theme", "a", {"title": "a"})
    for reader in (lake, open_lake(uri)):
        with reader.begin("themes", "p", derivation="d") as again:
            assert again.done and again.versions == (theme,)
    assert not lake.begin("themes", "p", derivation="other").done
    assert not lake.begin("themes", "q", derivation="d").done
    assert len(lake.read("themes")) == 1


def test_a_later_run_that_finds_a_batch_done_is_noted_and_moves_no_table(uri: str):
    lake = open_lake(uri)
    with lake.begin("themes", derivation="d", run_id="r1") as batch:
        batch.create("theme", "a", {"title": "a"})
    before = lake.read("batches"), lake.read("themes"), lake.read("versions")
    for _ in range(2):
        with lake.begin("themes", derivation="d", run_id="r2") as again:
            assert again.done
    notes = lake.sql("SELECT run_id, partition FROM events WHERE event_type = 'reused'").to_pylist()
    assert notes == [{"run_id": "r2", "partition": batch.id}]
    assert (lake.read("batches"), lake.read("themes"), lake.read("versions")) == before


def test_the_same_content_again_is_observed_and_makes_no_version(uri: str):
    lake = open_lake(uri)
    with lake.begin("themes", derivation="1") as batch:
        first = batch.create("theme", "a", {"title": "one"})
    with lake.begin("themes", derivation="2") as batch:
        assert batch.create("theme", "a", {"title": "one"}) == first
    assert [row["rev"] for row in lake.read("themes")] == [1]
    types = lake.sql("SELECT event_type FROM events WHERE version_id IS NOT NULL ORDER BY commit_version").to_pylist()
    assert [row["event_type"] for row in types] == ["created", "observed"]


def test_revisions_follow_commits_and_going_back_makes_the_old_version_current(lake):
    made = []
    for derivation, title in (("1", "one"), ("2", "two"), ("3", "one")):
        with lake.begin("themes", derivation=derivation) as batch:
            made.append(batch.create("theme", "a", {"title": title}))
    assert made[0] == made[2] != made[1]
    assert [(r["rev"], r["state"]) for r in lake.read("themes")] == [(1, "created"), (2, "superseded")]
    assert lake.resolve("theme", "a") == made[0]


def test_files_may_be_transport_only_so_that_other_bytes_are_the_same_version(lake):
    versions = set()
    for number, data in enumerate((b"rows in one order", b"rows in another")):
        with lake.begin("databases", derivation=str(number)) as batch:
            payload = {"digest": "logical"}
            versions.add(batch.create("database", "d", payload, files={"x": data}, blob_in_identity=False))
    assert len(versions) == 1
    assert lake.files(versions.pop()) == {"x": b"rows in one order"}


def test_edges_name_the_exact_versions_a_version_was_made_from(uri: str):
    lake = open_lake(uri)
    with lake.begin("themes", derivation="d") as batch:
        theme = batch.create("theme", "a", {"title": "a"})
    with lake.begin("databases", derivation="d") as batch:
        database = batch.create("database", "db", {"round": 0}, parents=[(theme, "theme")])
    [edge] = open_lake(uri).read("edges")
    assert (edge["child"], edge["parent"], edge["role"]) == (database, theme, "theme")


def test_an_unknown_parent_is_refused_before_anything_is_written(lake):
    with lake.begin("x", derivation="1") as batch:
        batch.create("theme", "trains", {})
    with pytest.raises(NotFoundError, match="did you mean trains"), lake.begin("x", derivation="2") as batch:
        batch.create("database", "d", {}, parents=[("trainz@0123", "theme")])
    with pytest.raises(NotFoundError, match="did you mean trains"), lake.begin("x", derivation="3") as batch:
        batch.observe("trainz@0123", {"verdict": "matched"})
    assert [row["derivation"] for row in lake.read("batches")] == ["1"]


def test_a_retired_version_is_current_no_more_but_stays_readable(lake):
    with lake.begin("x", derivation="1") as batch:
        tool = batch.create("tool", "t", {"name": "n"})
    with lake.begin("x", derivation="2") as batch:
        batch.retire(tool, "its gate holds no more")
    assert lake.read("tools", columns=["state"]) == [{"state": "retired"}]
    assert lake.payload(tool) == {"name": "n"}
    with pytest.raises(NotFoundError, match="retired"):
        lake.resolve("tool", "t")


def test_a_quarantined_item_keeps_its_raw_bytes(uri: str):
    lake = open_lake(uri)
    with lake.begin("themes", derivation="d") as batch:
        batch.quarantine(stage="themes", item="a.json, line 3", reason="not_json", detail="a comma", raw=b"\xff{,")
        batch.quarantine(stage="themes", item="a.json, line 3", reason="not_json", detail="a brace", raw=b"}")
    [row, other] = open_lake(uri).read("quarantine")
    assert (row["item"], row["reason"]) == (other["item"], other["reason"])  # two bad rows of one file
    assert (row["item"], row["reason"]) == ("a.json, line 3", "not_json")
    assert lake.blob(row["raw_blob"]) == b"\xff{,"


def test_rows_are_chosen_by_value_by_list_and_by_null(lake):
    with lake.begin("x", derivation="d") as batch:
        for number in range(4):
            row = {"gate": f"g{number}", "subject_kind": "task", "accepted": number % 2 == 0, "round": number or None}
            batch.record("gate_verdicts", row)

    def gates(**where):
        return [row["gate"] for row in lake.read("gate_verdicts", where=where, columns=["gate"])]

    assert gates(accepted=True) == ["g0", "g2"]
    assert gates(gate=["g3", "g1", "none"]) == ["g1", "g3"]
    assert gates(round=None) == ["g0"]
    assert gates(accepted=True, round=2) == ["g2"]
    assert gates(gate=[]) == []


def test_a_point_in_time_shows_what_was_committed_by_then(uri: str):
    lake = open_lake(uri)
    points = []
    for number in range(3):
        with lake.begin("x", derivation=str(number)) as batch:
            made = batch.create("theme", "a", {"title": str(number)})
        [at] = lake.read("batches", where={"batch": batch.id}, columns=["committed_at"])
        points.append((lake.events_version(), at["committed_at"], made))
    for number, (version, time, made) in enumerate(points):
        for at in (version, str(version), time, time.isoformat()):
            assert [row["title"] for row in lake.read("themes", at=at)] == [str(n) for n in range(number + 1)]
            assert lake.at(at).resolve("theme", "a") == made
            assert lake.sql("SELECT max(rev) AS rev FROM themes", at=at).to_pylist() == [{"rev": number + 1}]
    assert lake.read("themes", at=points[0][1] - timedelta(days=1)) == []
    assert lake.read("themes", at=datetime.now(UTC)) == lake.read("themes")
    with pytest.raises(NotFoundError, match="neither a snapshot"):
        lake.read("themes", at="yesterday")
    with pytest.raises(NotFoundError, match="versions 0 to"):
        lake.read("themes", at=1_000)


def test_names_resolve_to_exact_versions_or_name_what_is_near(lake):
    with lake.begin("x", derivation="d") as batch:
        rail = batch.create("environment", "rail-3f2a1b", {"title": "rail"})
        batch.create("environment", "rain-000000", {"title": "rain"})
    assert lake.resolve("environment", rail) == lake.resolve("environment", "rail-3f2a1b") == rail
    assert lake.resolve("environment", "rail") == lake.find("rail-3") == rail
    with pytest.raises(NotFoundError, match="2 environment names begin with 'ra'"):
        lake.resolve("environment", "ra")
    with pytest.raises(NotFoundError, match="did you mean rail-3f2a1b"):
        lake.resolve("environment", "rial-3f2a1b")
    with pytest.raises(NotFoundError, match="did you mean environment"):
        lake.resolve("enviroment", "rail")
    with pytest.raises(NotFoundError):
        lake.resolve("task", "rail")


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda b: b.create("theme", "a", {"title": 3}), r"themes\.title: 3 is not a text"),
        (lambda b: b.create("theme", "a", {"x": float("nan")}), "nan has no JSON form"),
        (lambda b: b.create("theme", "a", {"x": "\ud800"}), "surrogates not allowed"),
        (lambda b: b.create("theme", "a", {1: 2}), "must be a string"),
        (lambda b: b.create("database", "a", {"round": 2**63}), "is not a 64-bit integer"),
        (lambda b: b.create("database", "a", {"round": True}), "is not a 64-bit integer"),
        (lambda b: b.create("theme", "a@b", {}), "printable, without @"),
        (lambda b: b.create("theme", "", {}), "printable, without @"),
        (lambda b: b.record("costs", {"stage": "x", "cpu": 1}), r"costs\.cpu: there is no such column"),
        (lambda b: b.record("costs", {"cpu_s": float("inf")}), "is not a finite number"),
        (lambda b: b.record("themes", {}), "fact tables only"),
        (lambda b: b.observe(b.create("theme", "a", {}), {"title": "x"}), r"themes\.title: there is no such column"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_nothing_is_written(lake, act, said):
    with pytest.raises(BadRowError, match=said), lake.begin("x", derivation="d") as batch:
        act(batch)
    assert lake.read("batches") == []


def test_an_unknown_table_or_column_is_named_with_what_is_near(lake):
    with pytest.raises(NotFoundError, match="did you mean themes"):
        lake.read("theme")
    with pytest.raises(NotFoundError, match="did you mean title"):
        lake.read("themes", columns=["titel"])
    with pytest.raises(BadRowError, match="cannot be compared"):
        lake.read("databases", where={"round": "one"})


def test_a_place_that_holds_something_else_is_no_lake(uri: str, tmp_path: Path):
    with pytest.raises(NotALakeError, match="there is nothing"):
        open_lake(uri, create=False)
    other = tmp_path / "photos"
    other.mkdir()
    (other / "cat.jpg").write_bytes(b"")
    with pytest.raises(NotALakeError, match=r"it has no lake\.json but holds cat\.jpg"):
        open_lake(other)
    assert [path.name for path in other.iterdir()] == ["cat.jpg"]
    with pytest.raises(NotALakeError, match="it is a file"):
        open_lake(other / "cat.jpg")
    with pytest.raises(NotALakeError, match="only directories and s3://"):
        open_lake("gs://bucket/lake")


def test_a_lake_of_a_newer_format_is_refused(tmp_path: Path):
    open_lake(tmp_path / "lake")
    (tmp_path / "lake" / "lake.json").write_text('{"format": 99, "lake": "agent-world"}')
    with pytest.raises(LakeFromNewerVersionError, match="lake format 99, this version reads up to 1; upgrade"):
        open_lake(tmp_path / "lake")
    for broken in ("{", "[]", '{"format": 1}', '{"format": 1, "lake": "agent-worle"}'):
        (tmp_path / "lake" / "lake.json").write_text(broken)
        with pytest.raises(NotALakeError, match="cannot be read"):
            open_lake(tmp_path / "lake")


def test_two_lakes_in_which_the_same_was_made_have_the_same_ids(tmp_path: Path):
    def made(name: str) -> list:
        lake = open_lake(tmp_path / name)
        with lake.begin("x", "p", derivation="d", run_id=name) as batch:
            theme = batch.create("theme", "a", {"title": "a"}, files={"f": b"1"})
            batch.create("database", "b", {"round": 1}, parents=[(theme, "theme")])
            batch.record("costs", {"stage": "x"})
        return lake.sql("SELECT event_id, version_id, content_hash, derivation_hash, blob_root FROM events").to_pylist()

    assert made("one") == made("two")
