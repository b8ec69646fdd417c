"""The commands over a lake: rows as JSON for programs, tables for people, one line for an error."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent_world.errors import AgentWorldError
from agent_world.lake import Lake
from dagster_project.cli import cli
from tests.command import agent_world


@pytest.fixture
def filled(lake: Lake) -> Lake:
    with lake.begin("themes", derivation="d", run_id="r") as batch:
        theme = batch.create("theme", "rail", {"title": "Zürich — rail"})
        batch.record("runs", {"run": "r", "status": "started"})
    with lake.begin("tools", derivation="d", run_id="r") as batch:
        tool = batch.create("tool", "rail/find", {"name": "find"}, parents=[(theme, "theme")])
        batch.create("environment", "rail-env", {"title": "x"}, parents=[(tool, "tool")])
        batch.create("task", "task-1", {"instruction": "x"}, parents=[(tool, "calls")])
        for accepted in (True, False):
            verdict = {"gate": "tool", "accepted": accepted, "reason": None if accepted else "acc", "round": 0}
            batch.record("gate_verdicts", verdict | {"subject": tool if accepted else f"{tool}2"})
    return lake


def run(lake: Lake | str, *arguments: str) -> Result:
    uri = lake if isinstance(lake, str) else lake.uri
    return CliRunner().invoke(cli, [*arguments, "--lake", uri])


def rows(lake: Lake, *arguments: str) -> list[dict]:
    result = run(lake, *arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_sql_prints_rows_as_objects_csv_or_a_table(filled: Lake):
    query = "SELECT title, rev, created_at FROM themes"
    [row] = rows(filled, "sql", query)
    assert (row["title"], row["rev"]) == ("Zürich — rail", 1) and row["created_at"].endswith("+00:00")
    [line] = csv.DictReader(io.StringIO(run(filled, "sql", query, "--format", "csv").output))
    assert (line["title"], line["rev"]) == ("Zürich — rail", "1")
    assert "Zürich — rail" in run(filled, "sql", query).output
    assert rows(filled, "sql", "SELECT count(*) AS n FROM tools", "--at", "1") == [{"n": 0}]


def test_sql_prints_numbers_as_numbers_and_intervals_as_text(filled: Lake):
    wide = "sum(rev) AS n, [sum(rev)] AS list, {'n': sum(rev)} AS struct, 1.25::DECIMAL(10, 2) AS cents"
    spans = (
        "INTERVAL '1 year 2 months -1 day 100:02:03.5' AS long, INTERVAL '-5 seconds' AS back, INTERVAL 0 DAY AS none"
    )
    query = f"SELECT {wide}, {spans} FROM themes"
    [row] = rows(filled, "sql", query)
    assert (row["n"], row["list"], row["struct"], row["cents"]) == (1, [1], {"n": 1}, 1.25)
    assert (row["long"], row["back"]) == ("1 year 2 months -1 day 100:02:03.5", "-00:00:05")
    assert row["none"] == "00:00:00"
    [line] = csv.DictReader(io.StringIO(run(filled, "sql", query, "--format", "csv").output))
    assert (line["n"], line["cents"], line["back"]) == ("1", "1.25", "-00:00:05")


def test_sql_keeps_every_column_and_every_digit_and_tells_the_columns_of_no_rows(filled: Lake):
    [row] = rows(filled, "sql", "SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a")
    assert list(row.values()) == [1, 2, 3, 4] and next(iter(row)) == "a"
    query = "SELECT 123456789.123::DOUBLE AS wide, 'ab'::BLOB AS bytes, TIMESTAMP '2020-01-01 01:02:03.5' AS at"
    told = run(filled, "sql", query, "--format", "csv").output
    assert told.splitlines() == ["wide,bytes,at", "123456789.123,6162,2020-01-01T01:02:03.500000"]
    [odd] = rows(filled, "sql", "SELECT 'nan'::DOUBLE AS a, ['inf'::DOUBLE] AS b, 1.5 AS c")
    assert odd == {"a": "nan", "b": ["inf"], "c": 1.5}
    nothing = "SELECT title, rev FROM themes WHERE false"
    assert run(filled, "sql", nothing, "--format", "csv").output.splitlines() == ["title,rev"]
    assert run(filled, "sql", nothing).output.split()[:2] == ["title", "rev"]


def test_sql_reads_the_lake_named_by_the_environment(filled: Lake):
    command = CliRunner(env={"AGENT_WORLD_LAKE": filled.uri})
    result = command.invoke(cli, ["sql", "SELECT 1 AS one FROM themes", "--format", "json"])
    assert json.loads(result.output) == [{"one": 1}]


def test_status_counts_tables_and_gates_and_names_what_is_unfinished(filled: Lake):
    lines = {(line["section"], line["name"]): line for line in rows(filled, "status")}
    assert lines["table", "themes"]["count"] == 1
    assert lines["gate", "tool, round 0"]["detail"] == "1 accepted; 1 acc"
    assert "--resume" in lines["unfinished", "r"]["detail"]
    assert lines["unfinished", "r"]["count"] == 1  # the batch after the one that marked its start


def test_a_snapshot_is_created_listed_exported_imported_and_verified(filled: Lake, tmp_path: Path):
    created = run(filled, "snapshot", "create", "--format", "json")
    snapshot = json.loads(created.output)["snapshot_id"]
    assert [row["snapshot_id"] for row in rows(filled, "snapshot", "list")] == [snapshot]
    assert run(filled, "snapshot", "export", snapshot, str(tmp_path / "out")).exit_code == 0
    other = str(tmp_path / "other")
    assert run(other, "snapshot", "import", str(tmp_path / "out")).exit_code == 0
    assert run(other, "snapshot", "verify", snapshot[:12]).exit_code == 0
    pack = max((tmp_path / "other" / "blobs").rglob("*"), key=lambda path: path.is_file())
    pack.write_bytes(b"?" + pack.read_bytes()[1:])
    broken = run(other, "snapshot", "verify", snapshot)
    assert broken.exit_code == 1 and pack.name[:12] in broken.output


def test_replay_verify_compares_every_table_and_fails_when_one_differs(filled: Lake, monkeypatch):
    found = rows(filled, "replay", "--verify")
    assert all(row["same"] for row in found) and {"themes", "edges", "blobs"} <= {row["table"] for row in found}
    monkeypatch.setattr("agent_world.lake.replay.Replayed.same", property(lambda self: self.table != "tools"))
    assert run(filled, "replay", "--verify").exit_code == 1
    assert run(filled, "replay").exit_code == 0


def test_lineage_answers_as_tables_and_as_objects(filled: Lake):
    tool = filled.resolve("tool", "rail/find")
    [up] = rows(filled, "lineage", "upstream", "task-1")
    assert [hop["version_id"] for hop in up["hops"]] == [tool, filled.resolve("theme", "rail")]
    [down] = rows(filled, "lineage", "downstream", "rail", "--limit", "1")
    assert down["truncated"] is True
    [touched] = rows(filled, "lineage", "impact", "rail/find")
    assert [link["role"] for link in touched["used_by"]] == ["calls"] and len(touched["held_by"]) == 1
    assert "holds it as tool" in run(filled, "lineage", "impact", tool).output
    assert rows(filled, "lineage", "why", tool)[0]["stage"] == "tools"
    assert rows(filled, "lineage", "diff", "rail", "rail/find")[0]["payload"]["title"] == ["Zürich — rail", None]
    assert [step["stage"] for step in rows(filled, "lineage", "reproduce", "task-1")] == ["themes", "tools"]
    assert rows(filled, "lineage", "as-of", "rail", "--at", "1")[0]["rev"] == 1


def test_an_impact_names_at_most_its_limit_and_says_what_it_left_out(filled: Lake):
    tool = filled.resolve("tool", "rail/find")
    with filled.begin("tasks", derivation="d") as batch:
        for number in range(2, 5):
            batch.create("task", f"task-{number}", {"instruction": "x"}, parents=[(tool, "calls")])
    [cut] = rows(filled, "lineage", "impact", tool, "--limit", "3")
    assert [len(cut[name]) for name in ("used_by", "held_by", "affected")] == [3, 1, 3]
    assert cut["truncated"] and cut["left_out"] == {"used_by": 1, "held_by": 0}
    shown = run(filled, "lineage", "impact", tool, "--limit", "3")
    assert shown.stderr == f"{tool}: left out 1 more that used it; raise --limit\n"
    [whole] = rows(filled, "lineage", "impact", tool, "--limit", "4")
    assert not whole["truncated"] and len(whole["used_by"]) == 4


def test_a_name_that_several_kinds_have_is_told_with_the_kind_of_each(filled: Lake):
    with filled.begin("databases", derivation="d") as batch:
        database = batch.create("database", "rail", {"round": 0})
    result = run(filled, "lineage", "upstream", "rail")
    theme = filled.resolve("theme", "rail")
    assert f"did you mean {theme} (theme), {database} (database)?" in str(result.exception)
    then = str(filled.events_version())
    result = run(filled, "lineage", "as-of", "rail", "--at", then)
    assert f"did you mean {theme} (theme), {database} (database)?" in str(result.exception)
    for version in (theme, database):
        [told] = rows(filled, "lineage", "as-of", version[:-16], "--at", then)
        assert told["version_id"] == version
    assert rows(filled, "lineage", "as-of", "rail/f", "--at", then)[0]["artifact_id"] == "rail/find"


def test_gc_says_what_would_go_and_removes_only_when_told(filled: Lake):
    filled.storage.write("blobs/packs/aa/lost", b"lost")
    assert rows(filled, "gc") == []
    assert [row["key"] for row in rows(filled, "gc", "--grace-days", "0")] == ["blobs/packs/aa/lost"]
    assert filled.storage.exists("blobs/packs/aa/lost")
    assert len(rows(filled, "gc", "--grace-days", "0", "--remove")) == 1
    assert not filled.storage.exists("blobs/packs/aa/lost")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sql", "SELECT * FROM theme"), "does not exist"),
        (("lineage", "why", "raul"), "did you mean rail"),
        (("snapshot", "verify", "123456"), "there is no snapshot"),
        (("sql", "SELECT 1 FROM themes", "--at", "noon"), "neither a snapshot"),
    ],
)
def test_a_mistake_is_an_error_of_ours_with_one_line(filled: Lake, arguments: tuple[str, ...], said: str):
    result = run(filled, *arguments)
    assert isinstance(result.exception, AgentWorldError) and said in str(result.exception)
    assert "\n" not in str(result.exception)


def test_a_directory_that_is_no_lake_gets_one_line_and_a_non_zero_exit(tmp_path: Path):
    (tmp_path / "cat.jpg").write_bytes(b"")
    found = agent_world("status", lake=tmp_path)
    assert found.returncode == 1 and found.stdout == ""
    [line] = found.stderr.splitlines()
    assert f"{tmp_path} is not a lake: it has no lake.json but holds cat.jpg" in line
