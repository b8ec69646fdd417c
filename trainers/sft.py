"""Supervised fine-tuning on demonstrations: our own loop, since it sees twice the tokens of TRL's SFTTrainer on a CPU.

The loss is cross-entropy on what the policy writes, plus a part of the same on what it reads and has read before:
observations repeat arguments, which teaches a small model to copy. What is new in an observation does not count: it
cannot be foretold, and would drown the rest. Hidden matrices are trained by Muon, everything else by AdamW.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from agent_world.identity import rng
from agent_world.models.renderer import Renderer, transcript
from trainers.demonstration import Demonstration
from trainers.metrics import MetricsFile
from trainers.splicing import spliced

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class SftOptions:
    """Settings of one run; the defaults are those of the tiny policy (docs/training.md).

    `learning_rate` is AdamW's, Muon's is `muon` times that. `batch_tokens` counts padding; `auxiliary` weighs what the
    policy reads again; `splicing` is the share of episodes that are joined with another one of their environment.

    `start_share` is how much of the weights it started from the result has, the rest being what was learnt. What reward
    sharpened is spread again by imitation; the mean of both keeps most of the one and takes most of the other. Source:
    Wortsman et al., Robust fine-tuning of zero-shot models (2022).
    """

    steps: int
    learning_rate: float = 1e-2
    muon: float = 2.0
    batch_tokens: int = 4096
    longest: int = 1024
    auxiliary: float = 0.3
    splicing: float = 0.4
    start_share: float = 0.0
    warm_up: float = 0.05
    final_rate: float = 0.02
    largest_gradient: float = 1.0
    report_every: int = 20


def train_sft(
    model: PreTrainedModel,
    renderer: Renderer,
    demonstrations: Sequence[Demonstration],
    options: SftOptions,
    *,
    seed: int,
    metrics: MetricsFile,
) -> int:
    """Train `model` in place for `options.steps` steps; returns how many were done.

    Raises:
        FloatingPointError: the loss is no longer a number.
    """
    import torch
    from torch.nn import functional

    model.train()
    start = [parameter.detach().clone() for parameter in model.parameters()] if options.start_share else []
    optimizers = _optimizers(model, options)
    batches = _batches(renderer, demonstrations, options, seed)
    seen = 0
    for step in range(1, options.steps + 1):
        scale = _schedule(step / options.steps, options)
        for optimizer, rate in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * scale
        ids, written, repeated = (tensor.to(model.device) for tensor in next(batches))
        hidden = model.base_model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
        written, repeated = written[:, 1:], repeated[:, 1:]
        counts = written | repeated
        logits = model.get_output_embeddings()(hidden[counts]).float()
        losses = functional.cross_entropy(logits, ids[:, 1:][counts], reduction="none")
        policy, context = _mean(losses, written[counts]), _mean(losses, repeated[counts])
        loss = policy + options.auxiliary * context
        if not torch.isfinite(loss):
            raise FloatingPointError(f"the loss is {loss.item()} at step {step}; lower the learning rates")
        model.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), options.largest_gradient)
        for optimizer, _ in optimizers:
            optimizer.step()
        seen += int((ids != renderer.pad).sum())
        if step % options.report_every == 0 or step == options.steps:
            metrics.record(
                step,
                {
                    "loss": loss.item(),
                    "policy_loss": policy.item(),
                    "context_loss": context.item(),
                    "grad_norm": norm.item(),
                    "lr": optimizers[0][1] * scale,
                    "tokens": seen,
                },
            )
    if start:
        with torch.no_grad():
            for parameter, before in zip(model.parameters(), start, strict=True):
                parameter.lerp_(before, options.start_share)
    model.eval()
    return options.steps


def _mean(losses: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The mean of the chosen ones; of none it is 0, since a batch may repeat nothing."""
    return losses[chosen].sum() / chosen.sum().clamp(min=1)


def _schedule(progress: float, options: SftOptions) -> float:
    """Linear warm-up, then a cosine down to `final_rate`."""
    if progress < options.warm_up:
        return progress / options.warm_up
    rest = (progress - options.warm_up) / (1 - options.warm_up)
    return options.final_rate + (1 - options.final_rate) * 0.5 * (1 + math.cos(math.pi * rest))


def _optimizers(model: PreTrainedModel, options: SftOptions) -> list[tuple[torch.optim.Optimizer, float]]:
    """Each optimizer with its peak learning rate. Embeddings are matrices, but rows of them are hardly ever touched."""
    import torch

    from trainers.muon import Muon

    embeddings = {id(parameter) for parameter in model.get_input_embeddings().parameters()}
    embeddings |= {id(parameter) for parameter in model.get_output_embeddings().parameters()}
    hidden = [p for p in model.parameters() if p.ndim == 2 and id(p) not in embeddings]
    others = [p for p in model.parameters() if p.ndim != 2 or id(p) in embeddings]
    rate = options.learning_rate
    adam = torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
    return [(adam, rate), (Muon(hidden, lr=rate * options.muon), rate * options.muon)]


class _Example(NamedTuple):
    ids: list[int]
    written: list[bool]
    repeated: list[bool]


def _examples(
    renderer: Renderer, demonstrations: Sequence[Demonstration], options: SftOptions, seed: int
) -> Iterator[_Example]:
    """Endless epochs over the demonstrations in a new order each, some joined with another of their environment."""
    companions: dict[str, list[Demonstration]] = defaultdict(list)
    for demonstration in demonstrations:
        companions[demonstration.turn.environment].append(demonstration)
    for epoch in count():
        source = rng("sft", seed, epoch)
        yielded = False
        for index in source.sample(range(len(demonstrations)), len(demonstrations)):
            shown = demonstrations[index]
            if source.random() < options.splicing:
                others = [o for o in companions[shown.turn.environment] if o.turn.episode != shown.turn.episode]
                shown = (spliced(shown, source.choice(others)) if others else None) or shown
            ids, written, *_ = transcript(renderer, renderer.begin(shown.turn), shown.steps)
            if len(ids) <= options.longest:
                yielded = True
                yield _Example(ids, written, _read_again(ids, written))
        if not yielded:
            raise ValueError(f"no demonstration has at most {options.longest} tokens; raise `longest`")


def _read_again(ids: Sequence[int], written: Sequence[bool]) -> list[bool]:
    """Where the policy reads a token that stood after the same two tokens before, so that copying foretells it."""
    seen: set[tuple[int, ...]] = set()
    again = [False] * len(ids)
    for place in range(2, len(ids)):
        three = tuple(ids[place - 2 : place + 1])
        again[place] = three in seen and not written[place]
        seen.add(three)
    return again


def _batches(
    renderer: Renderer, demonstrations: Sequence[Demonstration], options: SftOptions, seed: int, window: int = 512
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Batches of alike length: ids, written, read again, each [rows, longest]; padding is neither."""
    import torch

    examples = _examples(renderer, demonstrations, options, seed)
    shuffler: random.Random = rng("sft batches", seed)
    while True:
        drawn = sorted((next(examples) for _ in range(window)), key=lambda example: len(example.ids))
        groups: list[list[_Example]] = [[]]
        for example in drawn:
            if groups[-1] and len(example.ids) * (len(groups[-1]) + 1) > options.batch_tokens:
                groups.append([])
            groups[-1].append(example)
        shuffler.shuffle(groups)
        for group in groups:
            width = max(len(example.ids) for example in group)
            ids = torch.full((len(group), width), renderer.pad)
            written, repeated = torch.zeros(2, len(group), width, dtype=torch.bool)
            for row, example in enumerate(group):
                length = len(example.ids)
                ids[row, :length] = torch.tensor(example.ids)
                written[row, :length] = torch.tensor(example.written)
                repeated[row, :length] = torch.tensor(example.repeated)
            yield ids, written, repeated
