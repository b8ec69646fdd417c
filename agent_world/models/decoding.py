"""Batched generation over many live contexts with a key-value cache that stays between the turns of an episode.

It drives any Hugging Face decoder through its own forward, over its live parameters, so that log-probabilities are
those of training and nothing has to be copied after an update. Contexts of different lengths share one batch without
padding inside the cache: each row writes at its own positions and attends to what lies before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import torch
    from transformers import PreTrainedModel

    from agent_world.models.grammar import Guide

_GROWTH = 64

_CROWDED = 0.75
"""Rows are moved together when fewer than this share of the batch still writes: moving costs about one step."""


class Written(NamedTuple):
    """What one context wrote: ids, and their log-probabilities in nats."""

    ids: list[int]
    logprobs: list[float]


class Decoder:
    """Contexts by name over one model, each a row of the cache.

    `context` is how many ids a context may hold; logits are divided by `temperature` before anything is made of them.
    """

    def __init__(
        self, model: PreTrainedModel, *, stops: frozenset[int], pad: int, context: int, temperature: float = 1.0
    ) -> None:
        self.context = context
        self._model, self._stops, self._pad, self._temperature = model, stops, pad, temperature
        self._cache = _Cache()
        self._names: list[str] = []  # by row
        self._lengths: list[int] = []  # ids in the cache, by row
        self._rows: dict[str, int] = {}

    def length(self, name: str) -> int | None:
        """How many ids of the context `name` are in the cache; None when there is no such context."""
        row = self._rows.get(name)
        return None if row is None else self._lengths[row]

    def drop(self, name: str) -> None:
        """Free the context `name`, if there is one."""
        if name in self._rows:
            last = len(self._names) - 1
            if self._rows[name] != last:
                self._exchange([self._rows[name]], [last])
            del self._rows[self._names.pop()]
            self._lengths.pop()

    def write(
        self,
        names: Sequence[str],
        feeds: Sequence[Sequence[int]],
        draws: np.ndarray | None,
        *,
        at_most: int,
        guides: Sequence[Guide | None] | None = None,
    ) -> list[Written]:
        """Read each context's feed, then write until a stop id or `at_most` ids, all contexts together.

        The last id that a context writes is not yet in the cache: the caller feeds it first the next time.

        Args:
            names: contexts, each once; an unknown one is begun.
            feeds: at least one id each; with `at_most` they must fit the context.
            draws: uniform numbers [len(names), at_most] that decide each sample; None takes the most likely ids.
            at_most: bound on the ids of one context.
            guides: which ids each context may write. Log-probabilities stay those of the model alone, which is what
                training computes.
        """
        import torch

        self._bring_forward(names)
        index = {name: i for i, name in enumerate(names)}
        owners = [index[name] for name in self._names[: len(names)]]  # by row
        written = [Written([], []) for _ in names]
        feed: list[Sequence[int]] = [feeds[owner] for owner in owners]
        with torch.no_grad():
            for count in range(at_most):
                logits = self._read(feed)
                live = [row for row, fed in enumerate(feed) if fed]
                uniform = None if draws is None else draws[[owners[row] for row in live], count]
                held = [guides[owners[row]] if guides else None for row in live]
                for row, guide, chosen, logprob in zip(
                    live, held, *self._choose(logits[live], held, uniform), strict=True
                ):
                    if guide:
                        guide.advance(chosen)
                    written[owners[row]].ids.append(chosen)
                    written[owners[row]].logprobs.append(logprob)
                    feed[row] = () if chosen in self._stops else (chosen,)
                if not any(feed):
                    break
                if sum(map(bool, feed)) < _CROWDED * len(feed):
                    owners, feed = self._close_up(owners, feed)
        return written

    def _bring_forward(self, names: Sequence[str]) -> None:
        """Make the rows of `names` the first ones, in any order; begin those that are new."""
        for name in names:
            if name not in self._rows:
                self._rows[name] = len(self._names)
                self._names.append(name)
                self._lengths.append(0)
        self._cache.make_room(len(self._names), 0)
        wanted = {self._rows[name] for name in names}
        self._exchange(
            [row for row in range(len(names)) if row not in wanted], sorted(row for row in wanted if row >= len(names))
        )

    def _close_up(self, owners: list[int], feed: list[Sequence[int]]) -> tuple[list[int], list[Sequence[int]]]:
        """Move the rows that still write to the front; returns their owners and feeds."""
        live = sum(map(bool, feed))
        idle = [row for row in range(live) if not feed[row]]
        behind = [row for row in range(live, len(feed)) if feed[row]]
        self._exchange(idle, behind)
        for one, other in zip(idle, behind, strict=True):
            owners[one], feed[one] = owners[other], feed[other]
        return owners[:live], feed[:live]

    def _read(self, feeds: Sequence[Sequence[int]]) -> torch.Tensor:
        """Feed the first rows (an empty feed leaves its row as it is); logits [rows, vocabulary] after each last id."""
        import torch

        rows, width, device = len(feeds), max(map(len, feeds)), self._model.device
        ids = torch.tensor([[*feed, *[self._pad] * (width - len(feed))] for feed in feeds], device=device)
        starts = torch.tensor(self._lengths[:rows], device=device)
        positions = starts[:, None] + torch.arange(width, device=device)
        # Rows write their padding too; it lies behind their end, where nothing looks and the next feed overwrites it.
        self._cache.positions, self._cache.visible = positions, int(positions.max()) + 1
        mask = torch.arange(self._cache.visible, device=device) <= positions[:, None, :, None]
        hidden = self._model.base_model(
            input_ids=ids, attention_mask=mask, position_ids=positions, cache=self._cache, use_cache=True
        ).last_hidden_state
        for row, feed in enumerate(feeds):
            self._lengths[row] += len(feed)
        last = torch.tensor([max(len(feed), 1) - 1 for feed in feeds], device=device)
        return self._model.get_output_embeddings()(hidden[torch.arange(rows, device=device), last]).float()

    def _choose(
        self, logits: torch.Tensor, guides: Sequence[Guide | None], uniform: np.ndarray | None
    ) -> tuple[list[int], list[float]]:
        """One id a row, the most likely one or by inverse transform, and its log-probability."""
        import torch

        logprobs = torch.log_softmax(logits / self._temperature, -1)
        allowed = _guided(logprobs, guides)
        if uniform is None:
            chosen = allowed.argmax(-1, keepdim=True)
        else:
            cumulative = torch.softmax(allowed, -1).cumsum(-1)
            wanted = torch.as_tensor(uniform, dtype=cumulative.dtype, device=cumulative.device)[:, None]
            chosen = torch.searchsorted(cumulative, wanted * cumulative[:, -1:], right=True)
            chosen = chosen.clamp(max=logits.shape[-1] - 1)
        return chosen[:, 0].tolist(), logprobs.gather(-1, chosen)[:, 0].tolist()

    def _exchange(self, ones: Sequence[int], others: Sequence[int]) -> None:
        """Exchange rows pairwise."""
        if not ones:
            return
        self._cache.exchange(ones, others, max(self._lengths[row] for row in (*ones, *others)))
        for one, other in zip(ones, others, strict=True):
            for by_row in (self._names, self._lengths):
                by_row[one], by_row[other] = by_row[other], by_row[one]
            self._rows[self._names[one]], self._rows[self._names[other]] = one, other


def _guided(logprobs: torch.Tensor, guides: Sequence[Guide | None]) -> torch.Tensor:
    """`logprobs` [rows, vocabulary] with what a row's guide does not allow at minus infinity."""
    import numpy as np
    import torch

    if not any(guides):
        return logprobs
    everything = np.ones(logprobs.shape[-1], dtype=bool)
    allowed = np.stack([everything if guide is None else guide.allowed() for guide in guides])
    return logprobs.masked_fill(~torch.from_numpy(allowed).to(logprobs.device), -torch.inf)


class _Cache:
    """Keys and values by layer, [rows, heads, length, head size]; attention layers call `update`."""

    def __init__(self) -> None:
        self.positions: torch.Tensor  # [rows, width] of the ids being fed
        self.visible = 0  # length that this feed attends to
        self._layers: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._rows = self._length = 0

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any) -> Any:
        import torch

        self.make_room(len(keys), self.visible)
        if layer == len(self._layers):
            shape = (self._rows, keys.shape[1], self._length, keys.shape[3])
            self._layers.append((keys.new_zeros(shape), values.new_zeros(shape)))
        rows = torch.arange(len(keys), device=keys.device)[:, None]
        stored = self._layers[layer]
        for kept, new in zip(stored, (keys, values), strict=True):
            kept[rows, :, self.positions] = new.transpose(1, 2)
        return tuple(kept[: len(keys), :, : self.visible] for kept in stored)

    def make_room(self, rows: int, length: int) -> None:
        if rows <= self._rows and length <= self._length:
            return
        self._rows, self._length = max(rows, self._rows), max(-(-length // _GROWTH) * _GROWTH, self._length)
        self._layers = [tuple(map(self._grown, pair)) for pair in self._layers]

    def exchange(self, ones: Sequence[int], others: Sequence[int], length: int) -> None:
        here, there = [*ones, *others], [*others, *ones]
        for pair in self._layers:
            for kept in pair:
                kept[here, :, :length] = kept[there, :, :length]

    def _grown(self, kept: torch.Tensor) -> torch.Tensor:
        grown = kept.new_zeros((self._rows, kept.shape[1], self._length, kept.shape[3]))
        grown[: kept.shape[0], :, : kept.shape[2]] = kept
        return grown
