"""The order of what supervised fine-tuning sees, and what it learns to copy."""

from itertools import islice

import torch

from tests.models import little
from trainers import sft
from trainers.demonstration import Demonstration

SHOWN = [Demonstration(little.turn(), little.EPISODE)] * 9


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
