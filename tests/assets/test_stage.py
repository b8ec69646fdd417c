"""A stage over many partitions: one that raises is set aside, what the machine cut short stays open."""

from __future__ import annotations

import time

import dagster as dg
import pytest

from agent_world import world
from agent_world.engine import Engine
from agent_world.environments.runtime import runtime_here, runtimes_of
from agent_world.identity import sha256
from assets.failures import FAILED, failures
from assets.stage import Job, UnfinishedStageError, map_jobs

JOBS = [Job(partition=name, item=name, derivation=sha256(name)) for name in ("good", "broken", "better")]


@pytest.fixture
def lake(tmp_path):
    return world.open(tmp_path / "lake", create=True)


def run(lake, work):
    return map_jobs(dg.build_asset_context(), lake, Engine(1), "stage", JOBS, work, save)


def save(item, result, batch):
    batch.create("theme", item, {"title": result})


def made(lake):
    return [row["artifact_id"] for row in lake.read("themes")]


def test_a_partition_that_raises_is_set_aside_and_its_neighbours_go_on(lake):
    def work(item):
        return 1 / 0 if item == "broken" else item

    assert run(lake, work) == ["broken"]
    assert made(lake) == ["good", "better"]
    (row,) = lake.read("quarantine")
    assert (row["stage"], row["item"], row["reason"]) == ("stage", "broken", FAILED)
    assert "division by zero" in row["detail"]
    assert run(lake, work) == ["broken"]
    assert len(lake.read("quarantine")) == 1


def test_every_partition_says_what_it_cost_once(lake):
    def work(item):
        time.sleep(0.05)
        return 1 / 0 if item == "broken" else item

    run(lake, work)
    costs = lake.read("costs")
    run(lake, work)
    assert lake.read("costs") == costs
    assert [(row["stage"], row["subject"]) for row in costs] == [("stage", job.partition) for job in JOBS]
    assert all(row["wall_s"] >= 0.05 > row["cpu_s"] >= 0 for row in costs)


def test_every_partition_says_under_which_versions_it_was_done(lake):
    run(lake, lambda item: item)
    assert [(row["stage"], row["subject"]) for row in lake.read("runtimes")] == [
        ("stage", job.partition) for job in JOBS
    ]
    assert set(runtimes_of(lake)) == {runtime_here()}


def test_a_partition_that_other_code_can_do_is_no_longer_set_aside(lake):
    run(lake, lambda item: 1 / 0 if item == "broken" else item)
    assert [failure.partition for failure in failures(lake)] == ["broken"]
    with lake.begin("stage", "broken", derivation=sha256("other code")) as batch:
        save("broken", "mended", batch)
    assert failures(lake) == []


def test_what_the_machine_cut_short_stays_open_and_is_done_by_the_next_run(lake):
    def work(item):
        if item == "broken":
            raise OSError(28, "No space left on device")
        return item

    with pytest.raises(UnfinishedStageError, match="broken: OSError"):
        run(lake, work)
    assert made(lake) == ["good", "better"]
    assert run(lake, lambda item: item) == []
    assert made(lake) == ["good", "better", "broken"]
    assert not lake.read("quarantine")
