"""The order of what supervised fine-tuning sees, and what it learns to copy."""

from dataclasses import replace
from itertools import islice

import pytest
import torch

from tests.models import little
from trainers import sft
from trainers.demonstration import Demonstration
from trainers.metrics import MetricsFile, read_metrics

SHOWN = [Demonstration(little.turn(episode=f"e{n}"), little.EPISODE) for n in range(9)]


def test_an_example_is_read_again_where_copying_foretells_it():
    ids = [5, 6, 7, 9, 5, 6, 7, 9]
    written = [False] * 7 + [True]
    assert sft._read_again(ids, written) == [False] * 6 + [True, False]


def test_batches_come_in_the_order_of_the_seed_and_padding_is_never_learnt():
    renderer, options = little.renderer(), sft.SftOptions(steps=1)
    one, other, third = (list(islice(sft._batches(renderer, SHOWN, options, seed, window=8), 3)) for seed in (3, 3, 4))
    assert all(torch.equal(left[0], right[0]) for left, right in zip(one, other, strict=True))
    assert not all(torch.equal(left[0], right[0]) for left, right in zip(one, third, strict=True))
    for ids, written, repeated in one:
        assert not (written | repeated)[ids == renderer.pad].any()
        assert not written[:, : len(little.script().prompt)].any()


def test_a_demonstration_is_joined_with_another_one_never_with_itself(monkeypatch):
    joined = []
    monkeypatch.setattr(sft, "spliced", lambda one, other: joined.append((one, other)))
    far = Demonstration(replace(little.turn(episode="far"), environment="far"), little.EPISODE)
    shown = [SHOWN[0], SHOWN[0], SHOWN[1], far]
    list(islice(sft._examples(little.renderer(), shown, sft.SftOptions(steps=1, splicing=1.0), 0), 40))
    assert {(one.turn.episode, other.turn.episode) for one, other in joined} == {("e0", "e1"), ("e1", "e0")}


@pytest.mark.parametrize("repeated", [[], [1, 2]])
def test_a_mean_over_nothing_is_nothing_and_any_other_is_a_mean(repeated):
    losses, chosen = torch.rand(4), torch.zeros(4, dtype=torch.bool)
    chosen[repeated] = True
    assert sft._mean(losses, chosen).item() == pytest.approx(losses[chosen].mean().item() if repeated else 0.0)


def test_a_lesson_that_repeats_nothing_is_learnt_like_any_other(tmp_path, monkeypatch):
    monkeypatch.setattr(sft, "_read_again", lambda ids, written: [False] * len(ids))
    with MetricsFile(tmp_path / "metrics.jsonl") as metrics:
        options = sft.SftOptions(steps=2, report_every=1)
        assert sft.train_sft(little.model(), little.renderer(), SHOWN, options, seed=0, metrics=metrics) == 2
    rows = list(read_metrics(tmp_path / "metrics.jsonl"))
    assert [row["context_loss"] for row in rows] == [0.0, 0.0]
    assert all(row["loss"] == row["policy_loss"] > 0 for row in rows)
