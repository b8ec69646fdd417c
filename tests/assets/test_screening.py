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
"""Of four samples the first so many pass."""

SPOILT = dict.fromkeys(PASSES, frozenset())
"""Samples that the harness spoils."""


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


def outcome(bound, sample):
    name = bound.task.task_id.removeprefix("toy-")
    return "infra_error" if sample in SPOILT[name] else "pass" if sample < PASSES[name] else "fail"


@pytest.fixture
def played(lake, monkeypatch):
    """Task sets that were played, one entry each time; passes as above."""
    played = []

    def samples_of(lake, engine, settings, policy, tasks, *, samples):
        played.append([bound.version for bound in tasks])
        return [Tried(bound.version, outcome(bound, sample)) for bound in tasks for sample in range(samples["sampled"])]

    monkeypatch.setattr(screening, "samples_of", samples_of)
    return played


def choose(lake, sets=None, groups=100):
    chosen = screening.learnable(
        dg.build_asset_context(), lake, Engine(1), Settings(), policy=lake.resolve("checkpoint", "sft"), name="pi0",
        round=0, sets=sets or [screening.task_set(lake, "training")], groups=groups,
    )  # fmt: skip
    return chosen, {lake.task(task).task.task_id.removeprefix("toy-") for task in chosen["tasks"]}


def test_what_is_passed_now_and_then_is_taken(lake, played):
    chosen, found = choose(lake)
    assert found == {"once", "often"}
    assert chosen["size"] == 2


def test_where_nothing_is_left_the_whole_set_is_taken(lake, played, monkeypatch):
    monkeypatch.setitem(PASSES, "once", 0)
    monkeypatch.setitem(PASSES, "often", 4)
    assert choose(lake)[1] == set(PASSES)


def test_no_more_is_tried_than_the_training_can_use_and_the_first_set_comes_first(lake, played):
    general = screening.task_set(lake, "training")
    hardest = [task for task in general["tasks"] if "never" in task]
    with lake.begin("targeted", derivation="d3") as batch:
        payload = {"name": "targeted", "purpose": "targeted", "round": 1, "tasks": hardest, "size": 1}
        targeted = {**payload, "version_id": batch.create("task_set", "targeted", payload)}
    chosen, _ = choose(lake, sets=[targeted, general], groups=1)
    assert len(chosen["passes"]) == 3
    assert hardest[0] in chosen["passes"]
    parents = {row["parent"] for row in lake.read("edges", where={"child": chosen["version_id"], "role": "task_set"})}
    assert parents == {targeted["version_id"], general["version_id"]}


def test_what_the_harness_spoilt_is_neither_passed_nor_failed(lake, played, monkeypatch):
    monkeypatch.setitem(SPOILT, "often", {3})
    assert choose(lake)[1] == {"once"}


def test_the_set_says_what_was_tried_and_comes_from_the_set_and_the_policy(lake, played):
    chosen, _ = choose(lake)
    passes = {lake.task(task).task.task_id.removeprefix("toy-"): count for task, count in chosen["passes"].items()}
    assert passes == PASSES
    roles = {row["role"] for row in lake.read("edges", where={"child": chosen["version_id"]})}
    assert roles == {"task_set", "policy"}
    assert len(played) == 1


def test_it_is_tried_once(lake, played):
    assert choose(lake) == choose(lake)
    assert len(played) == 1
