"""Which tasks of a set are taken for training by reward."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import dagster as dg
import pytest

from agent_world import world
from agent_world.engine import Engine
from agent_world.world import save_task
from assets import screening
from assets.settings import Settings
from assets.tasks import save_set
from tests.rollouts.cases import ENVIRONMENT, READING
from tests.toy_lake import save_toy

PASSES = {"never": 0, "once": 1, "often": 3, "always": 4}


class Tried(NamedTuple):
    task: str
    status: str


@pytest.fixture
def lake(tmp_path):
    opened = world.open(tmp_path / "lake", create=True)
    with opened.begin("toy", derivation="d0") as batch:
        environment, _ = save_toy(batch, ENVIRONMENT)
        for name in PASSES:
            task = replace(READING, task_id=f"toy-{name}", purpose="general", environments=(environment,))
            batch.observe(save_task(batch, task), {"tier": "train", "accepted": True})
        payload = {"name": "sft", "round": 0, "digest": "0", "method": "sft"}
        batch.create("checkpoint", "sft", payload)
    save_set(dg.build_asset_context(), opened, Settings(), "training", purpose="general")
    return opened


@pytest.fixture
def played(lake, monkeypatch):
    """Task sets that were played, one entry each time; passes as above."""
    played = []

    def samples_of(lake, engine, settings, policy, tasks, *, mode, samples):
        played.append([bound.version for bound in tasks])
        return [
            Tried(bound.version, "pass" if sample < PASSES[bound.task.task_id.removeprefix("toy-")] else "fail")
            for bound in tasks
            for sample in range(samples)
        ]

    monkeypatch.setattr(screening, "samples_of", samples_of)
    return played


def choose(lake, fewest):
    general = screening.task_set(lake, "training")
    chosen = screening.learnable(
        dg.build_asset_context(), lake, Engine(1), Settings(), policy=lake.resolve("checkpoint", "sft"), name="pi0",
        round=0, tasks=general, fewest=fewest,
    )  # fmt: skip
    return chosen, {lake.task(task).task.task_id.removeprefix("toy-") for task in chosen["tasks"]}


@pytest.mark.parametrize(
    ("fewest", "names"), [(1, {"once", "often"}), (3, {"once", "often", "always"}), (99, set(PASSES))]
)
def test_what_is_passed_now_and_then_is_taken_and_the_rest_only_to_fill_a_step(lake, played, fewest, names):
    chosen, found = choose(lake, fewest)
    assert found == names
    assert chosen["size"] == len(names)


def test_the_set_says_what_was_tried_and_comes_from_the_set_and_the_policy(lake, played):
    chosen, _ = choose(lake, 1)
    passes = {lake.task(task).task.task_id.removeprefix("toy-"): count for task, count in chosen["passes"].items()}
    assert passes == PASSES
    roles = {row["role"] for row in lake.read("edges", where={"child": chosen["version_id"]})}
    assert roles == {"task_set", "policy"}
    assert len(played) == 1


def test_it_is_tried_once(lake, played):
    assert choose(lake, 1) == choose(lake, 1)
    assert len(played) == 1
