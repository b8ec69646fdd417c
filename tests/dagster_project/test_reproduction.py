"""An artifact is made again from its recorded inputs in a lake of its own, and what differs is said precisely."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from agent_world import world
from agent_world.world import World, save_environment
from assets.environments import accept
from assets.settings import Settings
from dagster_project.reproduction import NotReproducibleError, Place, place_of, remake
from dagster_project.runs import mark
from tests.assets.test_environments import TOY, toolbox
from tests.toy_lake import THEME

KEY = "rich"


@pytest.fixture
def lake(tmp_path: Path) -> World:
    """A lake with a run, a database and tools; `accept` would make the environment."""
    from agent_world.discovery.builds import Seed, Snapshot
    from agent_world.world import save_database
    from assets.tools import save_tools

    opened = world.open(tmp_path / "lake", create=True)
    mark(opened, Settings(threads=1), "started")
    with opened.begin("tools", KEY, derivation="d0") as batch:
        theme = batch.create("theme", f"{KEY}-theme", {**THEME, "theme_id": f"{KEY}-theme"})
        database = replace(TOY.database, database_id=KEY, theme=theme)
        source = save_database(batch, database, TOY.files, [(theme, "theme")])
        snapshot = Snapshot(version=source, database=database, files=TOY.files, seed=Seed(version=theme, theme=None))
        save_tools(snapshot, toolbox(database, 2), batch)
    return opened


def tree(lake: World) -> dict[str, bytes]:
    return {item.key: lake.storage.read(item.key) for item in lake.storage.list() if "locks" not in item.key}


def test_an_environment_comes_out_the_same_and_the_lake_is_only_read(lake: World, tmp_path: Path):
    accept(dg.build_asset_context(), lake, Settings(), KEY, round=0)
    version = lake.resolve("environment", KEY)
    with lake.begin("later", derivation="d") as batch:
        batch.retire(version, "what came later is not seen")
    before = tree(lake)
    made = remake(lake, version, tmp_path / "again")
    assert (made.stage, made.partition, made.code_then) == ("environments", KEY, made.code_now)
    assert [(one.version_id, one.remade, one.same, one.differs) for one in made.remade] == [
        (version, version, True, {})
    ]
    assert tree(lake) == before


def test_what_comes_out_otherwise_is_told_field_by_field(lake: World, tmp_path: Path):
    accept(dg.build_asset_context(), lake, Settings(), KEY, round=0)
    right = lake.payload(lake.resolve("environment", KEY))
    forged = world.open(tmp_path / "forged", create=True)
    from agent_world.lake import carry

    carry.branch(forged, lake, lake.events_version() - 1)
    with forged.begin("environments", KEY, derivation="forged") as batch:
        version = save_environment(
            batch, environment_id=KEY, title="Another title", description=right["description"], theme=right["theme"],
            database=right["database_version"], tools=right["tool_versions"][1:],
        )  # fmt: skip
    [made] = remake(forged, version, tmp_path / "again").remade
    assert not made.same and made.remade == lake.resolve("environment", KEY)
    assert made.differs["payload"]["title"] == ["Another title", right["title"]]
    assert made.differs["parents_only_second"] == [[right["tool_versions"][0], "tool"]]
    assert set(made.differs) == {"payload", "parents_only_second"}


@pytest.mark.parametrize(
    ("stage", "partition", "place"),
    [
        ("databases", "k", Place("databases", "environment", "k")),
        ("tasks/held_out", "k", Place("tasks", "environment", "k")),
        ("targeted/r02", "k", Place("targeted_tasks", "targeted", "r02|k")),
        ("checkpoint/sft", "", Place("cold_start")),
        ("checkpoint/pi2-demonstrations", "", Place("round_policy", "round", "r02")),
        ("checkpoint/control1", "", Place("round_policy", "round", "r01")),
    ],
)
def test_every_stage_that_can_be_run_alone_has_its_asset(stage: str, partition: str, place: Place):
    from dagster_project.stages import ASSETS

    assert place_of(stage, partition) == place
    assert place.asset in {key.to_user_string() for asset in ASSETS for key in getattr(asset, "keys", ())}


def test_a_version_that_cannot_be_made_alone_gets_one_line(lake: World, tmp_path: Path):
    with lake.begin("arena/r01", KEY, derivation="d") as batch:
        theme = batch.create("theme", "x", THEME)
    with pytest.raises(NotReproducibleError, match=r"stage arena/r01 works on a whole round at once"):
        remake(lake, theme, tmp_path / "again")
