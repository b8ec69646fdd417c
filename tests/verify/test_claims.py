"""What a run must show, read off its lake: how much there is and whether it holds, and for `full` what was learnt."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from agent_world import world
from agent_world.arena.evaluation import paired_difference
from agent_world.world import World
from tests.command import agent_world

pytestmark = pytest.mark.long

_HOURS = 4 * 3600


def ran(lake: Path, profile: str) -> World:
    """A lake after a run of the profile."""
    done = agent_world("run", "--profile", profile, lake=lake, timeout=_HOURS)
    assert done.returncode == 0, done.stderr[-3000:]
    return world.open(lake)


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> World:
    return ran(tmp_path_factory.mktemp("default") / "lake", "default")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> World:
    return ran(tmp_path_factory.mktemp("full") / "lake", "full")


def created(lake: World, table: str, **where: object) -> list[dict]:
    return lake.read(table, where={"state": "created", **where})


def test_a_default_run_has_environments_of_many_sources_and_categories(default):
    environments = created(default, "environments", round=0)
    databases = {row["version_id"]: row for row in created(default, "databases")}
    themes = {row["version_id"]: row for row in created(default, "themes")}
    tables = [table for row in environments for table in databases[row["database_version"]]["tables"]]
    assert len(environments) >= 12
    assert len({table["source"]["package"] for table in tables if table["source"]}) >= 8
    assert {themes[row["theme"]]["source"] for row in environments} == {"M1", "M2", "M3"}
    assert len({row["category"] for row in environments}) >= 6


def test_a_default_run_has_tasks_of_both_kinds_everywhere_and_a_third_change_state(default):
    tasks = created(default, "tasks", accepted=True)
    kinds = defaultdict(set)
    for row in tasks:
        kinds[row["partition"]].add(row["kind"])
    assert len(tasks) >= 300
    assert {row["artifact_id"] for row in created(default, "environments")} <= kinds.keys()
    assert all(found == {"graph", "program"} for found in kinds.values()), kinds
    assert 3 * sum(bool(row["state_diff"]) for row in tasks) >= len(tasks)
    calls = [len(row["plan"]) for row in tasks]
    assert min(calls) == 1 and max(calls) >= 12


def test_a_default_run_measures_five_points_on_a_hundred_tasks(default):
    samples = defaultdict(lambda: defaultdict(int))
    for row in default.read("evaluations", where={"mode": "sampled"}):
        samples[row["point"]][row["task"]] += 1
    for point in ("untrained", "sft", "pi0", "pi1", "pi2"):
        assert len(samples[point]) >= 100 and set(samples[point].values()) == {8}, point


def test_every_accepted_artifact_of_a_default_run_passes_its_gates_again(default):
    done = agent_world("audit", lake=default.uri, timeout=_HOURS)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def gain(lake: World, before: str, after: str, environments: set[str] | None = None) -> float:
    """The lower end of the paired 95 % interval of what a policy gained on the held-out set."""
    rows = lake.read("evaluations", where={"mode": "sampled", "point": [before, after]})
    kept = [row for row in rows if environments is None or row["environment"] in environments]
    found = paired_difference(*([row for row in kept if row["point"] == point] for point in (after, before)))
    assert found
    return found.low


def test_grpo_on_the_general_set_gains_beyond_its_interval(full):
    assert gain(full, "sft", "pi0") > 0


def test_two_rounds_gain_beyond_their_interval(full):
    assert gain(full, "pi0", "pi2") > 0


def test_two_rounds_gain_beyond_their_interval_where_they_aimed(full):
    targeted = created(full, "tasks", purpose="targeted", accepted=True)
    assert gain(full, "pi0", "pi2", {row["partition"] for row in targeted}) > 0


def test_the_control_had_the_same_budget(full):
    made = {row["name"]: row for row in created(full, "checkpoints")}
    for name in ("1-demonstrations", "1", "2-demonstrations", "2"):
        assert made[f"pi{name}"]["steps_done"] == made[f"control{name}"]["steps_done"], name
