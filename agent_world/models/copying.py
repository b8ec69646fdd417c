"""Weights to start from that already copy: induction, laid into the first two layers instead of being waited for.

To copy a name, a model must look for where the last token stood before and write what followed it there. Training finds
this circuit late: with names spelt in small pieces, after most of what a CPU can do in minutes. It is simple, though.
One head of layer 0 looks one place back and notes in reserved dimensions which token it saw; one head of layer 1 looks
for the place whose note is the current token, and writes the token that stands there. Everything else starts at random.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM

_SHARPNESS = 60.0
"""How far, in logits, looking one place back stands above looking anywhere else."""

_MATCH = 16.0
"""The logit of a place that matches the current token."""

_STRENGTH = 3.0
"""How much larger the copied token is written than the current one stands there."""

_SPAN, _TURN = 300, 0.6
"""Matching uses the dimensions that rotary positions turn by less than `_TURN` radians over `_SPAN` tokens."""

_QUIET = 0.2
"""By how much the random output of every other part is scaled down, so that it does not drown the circuit."""


def teach_copying(model: LlamaForCausalLM, seed: int) -> None:
    """Lay the circuit into a fresh model, in place.

    Raises:
        ValueError: the model has fewer than two layers, or attention without biases.
    """
    import torch

    layers = model.model.layers
    if len(layers) < 2 or layers[0].self_attn.q_proj.bias is None:
        raise ValueError("copying needs two layers, and biases in attention")
    source = torch.Generator().manual_seed(seed)
    embedding = model.get_input_embeddings().weight
    size = layers[0].self_attn.head_dim
    tokens = embedding.shape[1] - size  # dimensions that hold the current token; the rest hold the note
    with torch.no_grad():
        scale = embedding.std().item()
        embedding[:, tokens:] = 0
        for number, layer in enumerate(layers):
            layer.mlp.down_proj.weight *= _QUIET
            layer.self_attn.o_proj.weight *= 0 if number < 2 else _QUIET
        note = _directions(size, tokens, source)
        frequencies = _frequencies(model, size)
        _look_back(layers[0].self_attn, note, frequencies, scale)
        _match_and_copy(layers[1].self_attn, note, _directions(size, tokens, source), frequencies, scale)


def _directions(rows: int, columns: int, source: torch.Generator) -> torch.Tensor:
    """Random orthonormal rows (columns, where there are fewer of them)."""
    import torch

    square, _ = torch.linalg.qr(torch.randn(max(rows, columns), min(rows, columns), generator=source))
    return square if rows >= columns else square.T


def _frequencies(model: LlamaForCausalLM, size: int) -> torch.Tensor:
    """The angle by which rotary positions turn each pair of dimensions from one token to the next."""
    import torch

    return model.config.rope_parameters["rope_theta"] ** (-torch.arange(0, size, 2) / size)


def _look_back(attention: torch.nn.Module, note: torch.Tensor, frequencies: torch.Tensor, scale: float) -> None:
    """Head 0 attends to the previous token, whatever it is, and notes it.

    Queries and keys come from biases alone: their product is a sum of cosines over the distance, shifted by one.
    """
    import torch

    size, half, tokens = len(note), len(note) // 2, note.shape[1]
    amplitude = math.sqrt(_SHARPNESS * math.sqrt(size) / (1 - torch.cos(frequencies)).sum())
    attention.q_proj.weight *= 0.1
    attention.k_proj.weight *= 0.1
    attention.k_proj.bias.view(-1, size)[:, :half] = amplitude
    attention.q_proj.bias[:half] = amplitude * torch.cos(frequencies)
    attention.q_proj.bias[half:size] = -amplitude * torch.sin(frequencies)
    attention.v_proj.weight[:size] = 0
    attention.v_proj.weight[:size, :tokens] = note
    attention.o_proj.weight[tokens:, :size] = scale * torch.eye(size)


def _match_and_copy(
    attention: torch.nn.Module, note: torch.Tensor, copied: torch.Tensor, frequencies: torch.Tensor, scale: float
) -> None:
    """Head 0 attends to the places whose note is the current token, and writes the token that stands there."""
    size, half, tokens = len(note), len(note) // 2, note.shape[1]
    slow = [pair for pair, angle in enumerate(frequencies.tolist()) if angle * _SPAN < _TURN]
    slow += [pair + half for pair in slow]
    gain = math.sqrt(_MATCH * math.sqrt(size) / len(slow))
    attention.q_proj.weight[:size] = 0
    attention.k_proj.weight[:size] = 0
    for place, dimension in enumerate(slow):
        attention.q_proj.weight[dimension, :tokens] = gain * note[place]
        attention.k_proj.weight[dimension, tokens + place] = gain
    attention.v_proj.weight[:size] = 0
    attention.v_proj.weight[:size, :tokens] = copied
    attention.o_proj.weight[:tokens, :size] = _STRENGTH * scale * tokens / size * copied.T
