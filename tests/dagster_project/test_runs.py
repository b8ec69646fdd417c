"""Which run a lake goes on with, and with what settings."""

from __future__ import annotations

import pickle

import pytest

from agent_world import world
from assets.settings import PROFILES, settings_for
from dagster_project.runs import OtherLoopError, OtherOptionsError, UnfinishedRunError, last_run, mark, settings_to_run

ASKED = {"profile": "smoke", "seed": 3, "threads": 1}


@pytest.fixture
def lake(tmp_path) -> world.World:
    return world.open(tmp_path / "lake", create=True)


def test_a_fresh_lake_runs_what_is_asked_for(lake):
    assert settings_to_run(lake, {}, resume=False) == PROFILES["default"]
    assert settings_to_run(lake, ASKED, resume=True) == settings_for("smoke", seed=3, threads=1)


@pytest.mark.parametrize("asked", [{}, {"profile": "smoke"}, {"seed": 3}, {"rounds": 1}, ASKED])
def test_a_resumed_run_has_its_own_settings_whatever_of_them_is_said_again(lake, asked):
    begun = settings_to_run(lake, ASKED, resume=False)
    mark(lake, begun, "started")
    assert settings_to_run(lake, asked, resume=True) == begun


def test_an_unfinished_run_has_to_be_resumed_first(lake):
    begun = settings_for("smoke", seed=3)
    mark(lake, begun, "started")
    with pytest.raises(UnfinishedRunError, match=rf"agent-world run --resume --lake {lake.uri}"):
        settings_to_run(lake, {"profile": "smoke", "seed": 3}, resume=False)


def test_options_that_contradict_the_unfinished_run_are_named_with_the_command_that_works(lake):
    mark(lake, settings_for("smoke", seed=3), "started")
    with pytest.raises(OtherOptionsError) as refused:
        settings_to_run(lake, {"profile": "full", "seed": 4, "rounds": 1}, resume=True)
    sentence = str(refused.value)
    assert "has --profile smoke, not full, --seed 3, not 4;" in sentence
    assert f"agent-world run --resume --lake {lake.uri}" in sentence
    assert str(pickle.loads(pickle.dumps(refused.value))) == sentence


def test_without_an_unfinished_run_the_last_is_taken_up_and_may_get_more_rounds(lake):
    done = settings_for("smoke", seed=3)
    for status in ("started", "succeeded"):
        mark(lake, done, status)
    assert settings_to_run(lake, {}, resume=True) == done
    longer = settings_to_run(lake, {"profile": "smoke", "seed": 3, "rounds": 4}, resume=False)
    assert longer == settings_for("smoke", seed=3, rounds=4)


@pytest.mark.parametrize(
    ("asked", "difference"),
    [({}, "--profile smoke, not default"), ({"profile": "smoke"}, "--seed 3, not 7"),
     ({"profile": "smoke", "seed": 3, "environments": 5}, "--environments 3, not 5")],
)  # fmt: skip
def test_a_lake_holds_one_loop(lake, asked, difference):
    for status in ("started", "succeeded"):
        mark(lake, settings_for("smoke", seed=3), status)
    with pytest.raises(OtherLoopError, match=difference) as refused:
        settings_to_run(lake, asked, resume=False)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_a_mark_is_made_once(lake):
    for status in ("started", "started", "failed", "failed"):
        mark(lake, PROFILES["smoke"], status)
    assert [row["status"] for row in lake.read("runs")] == ["started", "failed"]
    found = last_run(lake)
    assert found is not None and found.ended
