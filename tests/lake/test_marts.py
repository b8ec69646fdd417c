"""Marts are tables of Spark's own beside the lake, and each says which snapshot it was made from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from agent_world.home import service_home
from agent_world.lake import NotFoundError, open_lake, snapshots
from agent_world.lake.spark.marts import ROLLOUTS_DAILY, MartInLakeError, mart, write_mart
from lake_schemas.views import ViewSpec
from tests.lake.populated import populate

pytestmark = pytest.mark.usefixtures("spark_jvm")


def test_daily_rollouts_are_written_beside_the_lake_with_their_snapshot(tmp_path: Path):
    lake = open_lake(tmp_path / "lake")
    populate(lake)
    place = write_mart(lake, ROLLOUTS_DAILY)
    assert Path(place) == service_home(lake.uri) / "marts" / "rollouts_daily"
    table = DeltaTable(place)
    made = table.to_pyarrow_table()
    assert made.schema.names == [column.name for column in ROLLOUTS_DAILY.columns]
    assert sum(made.column("episodes").to_pylist()) == len(lake.read("trajectories")) == 6
    assert sum(made.column("steps").to_pylist()) == 18
    assert table.protocol().min_reader_version == 1
    lineage = json.loads(table.history()[0]["userMetadata"])
    assert lineage["snapshot"] == snapshots.ids(lake)[-1]
    assert lineage["tables"] == ["environments", "tasks", "trajectories"]


@pytest.mark.long
def test_a_mart_is_made_again_from_an_older_snapshot_and_keeps_its_history(tmp_path: Path):
    lake = open_lake(tmp_path / "lake")
    populate(lake)
    place = write_mart(lake, ROLLOUTS_DAILY)
    (first,) = snapshots.ids(lake)
    with lake.begin("more", derivation="d") as batch:
        batch.create("trajectory", "later", {"task": "t", "environment": "e", "steps": [], "status": "fail"})
    write_mart(lake, ROLLOUTS_DAILY, snapshot=first[:12])
    assert sum(DeltaTable(place).to_pyarrow_table().column("episodes").to_pylist()) == 6  # as the snapshot has it
    write_mart(lake, ROLLOUTS_DAILY)
    assert sum(DeltaTable(place).to_pyarrow_table().column("episodes").to_pylist()) == 7
    versions = [json.loads(commit["userMetadata"])["snapshot"] for commit in DeltaTable(place).history()]
    assert versions == [snapshots.ids(lake)[-1], first, first]


@pytest.mark.parametrize("place", ["", "/projections/000001/tasks", "/../other/../lake/marts", "/../link/marts"])
def test_nothing_is_written_into_the_lake(tmp_path: Path, place: str):
    lake = open_lake(tmp_path / "lake")
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    with pytest.raises(MartInLakeError, match="Spark never writes to"):
        write_mart(lake, ROLLOUTS_DAILY, f"{lake.uri}{place}")
    assert snapshots.ids(lake) == []


def test_an_unknown_mart_names_those_there_are():
    assert isinstance(mart("rollouts_daily"), ViewSpec)
    with pytest.raises(NotFoundError, match="did you mean rollouts_daily"):
        mart("rollouts")
