"""The views say what the report and the gates say, in both engines, and are documented in one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_world import world
from agent_world.arena.diagnosis import wilson
from agent_world.lake import QueryError
from agent_world.reporting import figures, rounds
from agent_world.reporting.ladder import ladder, ladders
from agent_world.world import World
from assets.failures import failures
from lake_schemas import TABLES
from lake_schemas.views import VIEWS
from tests.command import agent_world
from tests.lake.populated import KEY, OTHER, populate

DOCS = Path(__file__).parents[2] / "docs" / "sql.md"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    opened = world.open(tmp_path_factory.mktemp("views") / "lake", create=True)
    populate(opened)
    yield opened


def rows(lake: World, query: str) -> list[dict[str, Any]]:
    return lake.sql(query).to_pylist()


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_rows_and_the_columns_it_declares(lake: World, name: str):
    answer = lake.sql(f"SELECT * FROM {name}")
    assert answer.num_rows
    assert [(f.name, f.type) for f in answer.schema] == [(c.name, c.type) for c in VIEWS[name].columns]
    for column in VIEWS[name].columns:
        assert column.meaning and answer.column(column.name).null_count < answer.num_rows, column.name


def test_views_have_names_of_their_own():
    assert not set(VIEWS) & {*TABLES, "events"}


def test_the_ladder_is_that_of_the_report(lake: World):
    query = "SELECT line, gate, sum(candidates)::INT AS c, sum(accepted)::INT AS a FROM validity_ladder GROUP BY ALL"
    found = {(row["line"], row["gate"]): (row["c"], row["a"]) for row in rows(lake, query)}
    told = {
        (line, row["gate"]): (row["candidates"], row["accepted"])
        for line, verdicts in zip(("rewarded", "practised"), ladders(lake), strict=True)
        for row in ladder(verdicts)
    }
    assert found == told
    assert found["practised", "demonstration"] == (2, 1)


def test_rates_are_those_of_the_report_and_each_task_counts_once(lake: World):
    cuts = {(r["point"], r["cut"], r["value"]): r for r in rows(lake, "SELECT * FROM pass_rates")}
    for row in figures.rounds_table(lake):
        assert row["sampled"].startswith(f"{cuts[row['point'], 'all', '']['rate']:.3f} [")
        assert row["graph tasks"].startswith(f"{cuts[row['point'], 'kind', 'graph']['rate']:.3f} [")
    whole = cuts["pi1", "all", ""]
    assert (whole["tasks"], whole["samples"], whole["infra_errors"]) == (6, 17, 1)
    low, high = wilson(whole["rate"] * 6, 6)
    assert (whole["low"], whole["high"]) == pytest.approx((low, high))
    assert {cut: sum(r["samples"] for r in cuts.values() if r["cut"] == cut) for _, cut, _ in cuts} == dict.fromkeys(
        ("all", "environment", "category", "kind", "difficulty"), 34
    )


def test_weaknesses_come_in_the_order_of_the_diagnosis_with_what_was_made_for_them(lake: World):
    found = rows(lake, "SELECT * FROM weaknesses ORDER BY round, rank")
    assert [(r["environment"], r["guideline"]) for r in found] == [
        (row["environment"], row["guideline"]) for row in figures.weak_table(lake)
    ]
    first, second = found
    assert (first["targeted_tasks"], second["targeted_tasks"]) == (2, 0)
    assert first["enriched_version"] == lake.resolve("environment", KEY)
    assert second["enriched_version"] is None
    assert first["rate_before"] < first["rate_after"]


def test_checkpoints_have_the_trainings_of_the_report(lake: World):
    found = {row["name"]: row for row in rows(lake, "SELECT * FROM checkpoint_training")}
    for row in rounds.trainings_table(lake):
        view = found[row["checkpoint"]]
        assert (view["method"], view["trained_from"], view["steps"]) == (row["method"], row["from"], row["steps"])
        assert (view["tasks"], view["tried"]) == (row["tasks"], row["tried"])
        assert (view["new_demonstrations"], view["rehearsed"]) == (row["new demonstrations"], row["rehearsed"])
    assert found["pi0"]["tried"] == 7


def test_richness_is_that_of_the_report_for_every_version_without_workflow(lake: World):
    found = rows(lake, "SELECT environment, round, rows, filled FROM environment_richness WHERE NOT workflow")
    told = figures.richness_table(lake)
    keys = ("environment", "round", "rows", "filled")
    assert Counter(tuple(row[k] for k in keys) for row in found) == Counter(tuple(r[k] for k in keys) for r in told)
    pinned = rows(lake, "SELECT * FROM environment_richness WHERE environment_version IS NOT NULL ORDER BY rows")
    assert [(r["environment"], r["state"]) for r in pinned if r["round"] == 1] == [(KEY, "created")]


def test_yield_counts_what_is_current_and_what_it_cost(lake: World):
    query = "SELECT * FROM task_yield WHERE environment = '{}' AND purpose = '{}'"
    (here,) = rows(lake, query.format(KEY, "general"))  # one of the four is retired, one turned out to be hard
    assert (here["candidates"], here["kept"], here["hard"], here["episodes"], here["steps"]) == (3, 2, 1, 3, 9)
    assert (here["yield"], here["steps_per_kept"]) == (pytest.approx(2 / 3), 4.5)
    assert (here["cpu_s"], here["cpu_s_per_kept"], here["wall_s"]) == (7.5, 3.75, 9.0)
    (there,) = rows(lake, query.format(OTHER, "general"))
    assert (there["kept"], there["yield"], there["steps_per_kept"], there["cpu_s"]) == (0, 0.0, None, None)
    (shown,) = rows(lake, query.format(KEY, "practice"))
    assert (here["sound"], shown["sound"], shown["kept"]) == (3, None, 2)


def test_a_partition_that_was_made_since_is_no_longer_quarantined(lake: World):
    failed = {(r["stage"], r["item"]) for r in rows(lake, "SELECT * FROM open_quarantine WHERE reason = 'failed'")}
    assert failed == {(f.stage, f.partition) for f in failures(lake)} == {("tools", KEY)}
    assert "Ünicode's page" in {row["item"] for row in rows(lake, "SELECT item FROM open_quarantine")}


def test_a_view_shows_an_older_state(lake: World):
    assert lake.sql("SELECT * FROM weaknesses", at=3).num_rows == 0
    with pytest.raises(QueryError, match="weaknes does not exist"):
        lake.sql("SELECT * FROM weaknes")


def test_every_view_and_column_is_explained_in_the_documentation_in_the_same_words():
    page = DOCS.read_text("utf-8")
    for view in VIEWS.values():
        assert f"### {view.name}\n\n{view.meaning}\n" in page
        for column in view.columns:
            assert f"| `{column.name}` | {column.type} | {column.meaning} |" in page, view.name


def test_the_command_line_lists_meanings_and_refuses_a_missing_query(lake: World):
    told = agent_world("sql", "--views", "--format", "csv", lake=lake.uri)
    assert f'weaknesses,,,"{VIEWS["weaknesses"].meaning}"' in told.stdout
    assert "pass_rates,rate,double," in told.stdout
    for arguments in ([], ["--views", "SELECT 1"]):
        refused = agent_world("sql", *arguments, lake=lake.uri)
        assert refused.returncode == 2
        assert "--views" in refused.stderr
