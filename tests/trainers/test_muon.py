"""Our Muon is PyTorch's, but for the precision."""

import pytest
import torch

from trainers.muon import Muon, orthogonal


@pytest.mark.parametrize("shape", [(24, 24), (40, 16), (16, 40)])
def test_it_takes_the_steps_of_pytorchs_muon(shape):
    torch.manual_seed(0)
    start = torch.randn(shape)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    optimizers = [
        (ours, Muon([ours], lr=0.02)),
        (theirs, torch.optim.Muon([theirs], lr=0.02, weight_decay=0.0)),
    ]
    for step in range(10):
        gradient = torch.randn(shape, generator=torch.Generator().manual_seed(step))
        for parameter, optimizer in optimizers:
            parameter.grad = gradient.clone()
            optimizer.step()
    moved = (theirs - start).norm()
    assert moved > 0.1
    assert (ours - theirs).norm() < 0.02 * moved  # what bfloat16 rounds away


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_an_update_has_singular_values_around_one(shape):
    torch.manual_seed(1)
    values = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
    assert 0.3 < values.min() and values.max() < 1.6


def test_vectors_are_refused():
    with pytest.raises(ValueError, match="matrices"):
        Muon([torch.nn.Parameter(torch.zeros(3))], lr=0.1)
