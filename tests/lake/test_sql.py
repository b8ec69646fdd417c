from __future__ import annotations

import pytest

from agent_world.lake import Lake, QueryError
from lake_schemas import TABLES
from lake_schemas.views import VIEWS


@pytest.fixture
def filled(lake: Lake) -> Lake:
    with lake.begin("x", derivation="d") as batch:
        theme = batch.create("theme", "a", {"title": "A", "nouns": ["x", "y"]})
        batch.create("database", "b", {"round": 2}, parents=[(theme, "theme")])
    return lake


def test_every_table_and_the_events_are_views(filled: Lake):
    assert {row["name"] for row in filled.sql("SHOW TABLES").to_pylist()} == {*TABLES, *VIEWS, "events"}
    for name, spec in TABLES.items():
        assert filled.sql(f"SELECT * FROM {name}").column_names == [column.name for column in spec.all_columns]
    assert filled.sql("SELECT count(*) AS n FROM events").to_pylist() == [{"n": 3}]


def test_tables_join_and_json_columns_open(filled: Lake):
    query = """
        SELECT t.title, d.round, t.nouns ->> '$[1]' AS noun
        FROM databases d JOIN edges e ON e.child = d.version_id JOIN THEMES t ON t.version_id = e.parent
    """
    assert filled.sql(query).to_pylist() == [{"title": "A", "round": 2, "noun": "y"}]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM nothing", "nothing does not exist"),
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM read_csv('/etc/hostname')", "disabled by configuration"),
        ("COPY themes TO '/tmp/themes.csv'", "disabled by configuration"),
        ("SET enable_external_access = true", "locked"),
        ("", "gives no rows"),
    ],
)
def test_a_refused_query_is_one_clear_line(filled: Lake, query: str, said: str):
    with pytest.raises(QueryError, match=said) as refused:
        filled.sql(query)
    assert "\n" not in str(refused.value)
