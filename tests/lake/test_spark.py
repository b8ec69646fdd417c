"""Spark sees what DuckDB sees: every table and view, row by row, now and earlier, wherever the rows lie."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from agent_world.lake import Lake, QueryError, open_lake, spark
from agent_world.lake.sql import named
from dagster_project.cli.sql import command
from lake_schemas import EVENTS, TABLES
from lake_schemas.views import VIEWS
from tests.lake.populated import KEY, populate

pytestmark = pytest.mark.usefixtures("spark_jvm")
ALL = [*TABLES, "events", *VIEWS]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, int]:
    lake = open_lake(tmp_path_factory.mktemp("spark") / "lake")
    return lake, populate(lake)


@pytest.fixture(scope="module")
def now(filled: tuple[Lake, int], spark_jvm: Any) -> Iterator[Any]:
    yield spark.session(filled[0])


@pytest.fixture(scope="module")
def earlier(filled: tuple[Lake, int], spark_jvm: Any) -> Iterator[Any]:
    yield spark.session(*filled)


def rows(table: pa.Table) -> Counter[str]:
    """Rows in no order; the last digits of a mean depend on the order of its terms."""
    return Counter(
        json.dumps({k: round(v, 12) if isinstance(v, float) else v for k, v in row.items()}, default=str)
        for row in table.cast(table.schema).to_pylist()
    )


@pytest.mark.parametrize("name", ALL)
def test_every_table_and_view_is_equal_row_by_row_now_and_earlier(
    filled: tuple[Lake, int], now: Any, earlier: Any, name: str
):
    lake, before = filled
    for session, at in ((now, None), (earlier, before)):
        ours, theirs = lake.sql(f"SELECT * FROM {name}", at=at), session.table(name).toArrow()
        assert theirs.column_names == ours.column_names
        assert [field.type for field in theirs.schema] == [field.type for field in ours.schema]
        assert rows(theirs) == rows(ours)


def test_tables_are_read_where_they_are_stored_unless_readers_know_more(now: Any, earlier: Any, filled: Any):
    stored = {name for name in TABLES if "/projections/" in "".join(now.table(name).inputFiles())}
    assert {"themes", "databases"} & stored == set()  # the second step added to both
    assert {"task_sets", "checkpoints"} <= stored
    assert "/events/" in "".join(now.table("events").inputFiles())
    assert not any("/projections/" in file for file in earlier.table("task_sets").inputFiles())


def test_sessions_of_two_lakes_are_apart_and_do_not_move(tmp_path: Path, now: Any):
    lake = open_lake(tmp_path / "lake")
    with lake.begin("x", derivation="d") as batch:
        batch.create("theme", "only", {"title": "Only"})
    session = spark.session(lake, only=named("SELECT * FROM themes"))
    with lake.begin("x", derivation="e") as batch:
        batch.create("theme", "later", {"title": "Later"})
    assert [row.title for row in session.table("themes").collect()] == ["Only"]
    assert now.table("themes").count() == 2
    assert [table.name for table in session.catalog.listTables()] == ["themes"]
    assert spark.query("SELECT title FROM themes ORDER BY title", lake).column("title").to_pylist() == ["Later", "Only"]


def test_columns_and_views_carry_their_meaning(now: Any):
    described = {row.col_name: row.comment for row in now.sql("DESCRIBE weaknesses").collect()}
    assert described == {column.name: column.meaning for column in VIEWS["weaknesses"].columns}
    assert {row.col_name: row.comment for row in now.sql("DESCRIBE events").collect()} == {
        column.name: column.meaning for column in EVENTS.all_columns
    }
    assert {row.tableName for row in now.sql("SHOW TABLES").collect()} == set(ALL)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM nothing", "nothing"),
        ("SELEC 1", "SELEC"),
        ("DELETE FROM themes", "gives no rows"),
        ("CREATE TABLE x USING parquet AS SELECT 1", "gives no rows"),
        ("WITH t AS (SELECT 1) INSERT INTO themes SELECT * FROM t", "gives no rows"),
        ("SET x = 1", "gives no rows"),
    ],
)
def test_a_query_that_changes_something_or_cannot_be_is_refused_in_one_line(filled: Any, query: str, said: str):
    with pytest.raises(QueryError, match=said) as refused:
        spark.query(query, filled[0])
    assert "\n" not in str(refused.value)


def test_a_query_may_show_and_describe(filled: Any):
    assert set(spark.query("SHOW TABLES", filled[0]).column("tableName").to_pylist()) == set(ALL)
    assert spark.query("DESCRIBE themes", filled[0]).num_rows == len(TABLES["themes"].all_columns)
    counted = spark.query(f"SELECT count(*) AS n FROM tasks WHERE `partition` = '{KEY}'", filled[0], at=filled[1])
    assert counted.to_pylist() == [{"n": 10}]


def test_the_command_line_gets_the_same_answer_from_both_engines(filled: Any):
    query = "SELECT environment, sum(kept) AS kept FROM task_yield GROUP BY environment ORDER BY environment"
    asked = [query, "--at", str(filled[1]), "--lake", filled[0].uri, "--format", "json"]
    answers = [CliRunner().invoke(command, [*asked, "--engine", engine]) for engine in ("duckdb", "spark")]
    assert [answer.exit_code for answer in answers] == [0, 0]
    assert json.loads(answers[0].stdout) == json.loads(answers[1].stdout) != []
