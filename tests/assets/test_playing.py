"""Attempts of a checkpoint: the same and in the same order, whoever plays them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from agent_world import world
from agent_world.engine import Engine
from agent_world.models.tiny import save
from agent_world.rollouts.model import Outcome
from agent_world.world import save_task
from assets import playing
from assets.settings import Settings
from tests.models import little
from tests.rollouts.cases import ENVIRONMENT, READING, WRITING
from tests.toy_lake import save_toy


@pytest.fixture
def lake(tmp_path):
    opened = world.open(tmp_path / "lake", create=True)
    folder = tmp_path / "model"
    save(folder, little.model(), little.tokenizer())
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with opened.begin("toy", derivation="d0") as batch:
        environment, _ = save_toy(batch, ENVIRONMENT)
        for task in (READING, WRITING):
            save_task(batch, replace(task, environments=(environment,)))
        payload = {"name": "sft", "round": 0, "digest": "0", "method": "sft"}
        batch.create("checkpoint", "sft", payload, files=files, blob_in_identity=False)
    return opened


def tasks_of(lake):
    return [lake.task(row["version_id"]) for row in lake.read("tasks")]


def samples(lake, engine):
    tasks, version = tasks_of(lake), lake.resolve("checkpoint", "sft")
    found = playing.samples_of(lake, engine, Settings(), version, tasks, samples={"greedy": 1, "sampled": 3})
    greedy = [("greedy", task.version, 0) for task in tasks]
    sampled = [("sampled", task.version, index) for task in tasks for index in range(3)]
    assert [(sample.mode, sample.task, sample.sample) for sample in found] == greedy + sampled
    return [sample for sample in found if sample.mode == "sampled"]


def play(lake, engine):
    return [sample.trajectory for sample in samples(lake, engine)]


def test_attempts_do_not_depend_on_the_number_of_workers(lake, monkeypatch):
    monkeypatch.setattr(playing, "_HAND", 3)
    threads = torch.get_num_threads()
    alone = play(lake, Engine(1))
    assert torch.get_num_threads() == threads
    with Engine(2) as engine:
        assert play(lake, engine) == alone
    assert any(trajectory.steps != alone[0].steps for trajectory in alone)


def test_a_worker_that_cannot_play_says_why(lake, monkeypatch):
    monkeypatch.setattr(playing, "evaluate", lambda *_, **__: 1 / 0)
    with pytest.raises(playing.UnplayedError, match="division by zero"):
        play(lake, Engine(1))


def test_what_was_played_replays_what_was_forged_does_not_and_what_broke_has_no_end(lake):
    played = samples(lake, Engine(1))
    first, second, *rest = played
    forged = replace(first, trajectory=replace(first.trajectory, final_digest="0" * 64))
    broken = replace(second, trajectory=replace(second.trajectory, outcome=Outcome(status="infra_error")))
    with Engine(2) as engine:
        words = playing.replays_of(engine, tasks_of(lake), [forged, broken, *rest])
    assert (words[0].accepted, words[0].reason, words[1]) == (False, "other_digest", None)
    assert all(word.gate == "trajectory" and word.accepted for word in words[2:])
    assert len(words) == len(played)
