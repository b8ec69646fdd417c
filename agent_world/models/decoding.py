"""Batched generation over many live contexts with a key-value cache that stays between the turns of an episode.

It drives any Hugging Face decoder through its own forward, over its live parameters, so that log-probabilities are
those of training and nothing has to be copied after an update. Contexts of different lengths share one batch without
padding inside the cache: each row writes at its own positions and attends to what lies before. Where a guide leaves one
id only, it is written without asking the model and read together with what follows.
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

_WIDTH = 24
"""So many ids of a context are read at once: the rows of a batch are padded to the widest."""

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
        self._unread: dict[str, list[int]] = {}  # the last that a context wrote: read with its next feed

    def length(self, name: str) -> int | None:
        """How many ids the context `name` has; None when there is no such context."""
        row = self._rows.get(name)
        return None if row is None else self._lengths[row] + len(self._unread[name])

    def drop(self, name: str) -> None:
        """Free the context `name`, if there is one."""
        if name in self._rows:
            last = len(self._names) - 1
            if self._rows[name] != last:
                self._exchange([self._rows[name]], [last])
            del self._rows[self._names.pop()], self._unread[name]
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

        Args:
            names: contexts, each once; an unknown one is begun.
            feeds: what to read behind what was written, at least one id for a new context; with `at_most` they must
                fit the context.
            draws: uniform numbers [len(names), at_most] that decide each sample by its place; None takes the most
                likely ids.
            at_most: bound on the ids of one context.
            guides: which ids each context may write; probabilities are those of the choice among them.
        """
        import torch

        unread = [[*self._unread.get(name, ()), *fed] for name, fed in zip(names, feeds, strict=True)]
        self._bring_forward(names, [-(-len(fed) // _WIDTH) for fed in unread])
        index = {name: i for i, name in enumerate(names)}
        owners = [index[name] for name in self._names[: len(names)]]  # by row
        written = [Written([], []) for _ in names]
        feed: list[list[int]] = [unread[owner] for owner in owners]
        with torch.no_grad():
            while any(feed):
                logits = self._read(feed)
                live = [row for row, fed in enumerate(feed) if fed]
                places = [(owners[row], len(written[owners[row]].ids)) for row in live]
                uniform = None if draws is None else draws[tuple(zip(*places, strict=True))]
                held = [guides[owner] if guides else None for owner, _ in places]
                for row, guide, chosen, logprob in zip(
                    live, held, *self._choose(logits[live], held, uniform), strict=True
                ):
                    ids, logprobs = written[owners[row]]
                    run = [chosen, *self._forced(guide, chosen, at_most - len(ids) - 1)]
                    ids += run
                    logprobs += [logprob, *[0.0] * (len(run) - 1)]
                    feed[row] = [] if run[-1] in self._stops or len(ids) >= at_most else run
                    self._unread[names[owners[row]]] = run
                if any(feed) and sum(map(bool, feed)) < _CROWDED * len(feed):
                    owners, feed = self._close_up(owners, feed)
        return written

    def _forced(self, guide: Guide | None, chosen: int, most: int) -> list[int]:
        """What must follow `chosen`, up to a stop."""
        run: list[int] = []
        if guide:
            guide.advance(chosen)
            while [chosen, *run][-1] not in self._stops and len(run) < most and (only := guide.only()) is not None:
                guide.advance(only)
                run.append(only)
        return run

    def _bring_forward(self, names: Sequence[str], passes: Sequence[int]) -> None:
        """Make the rows of `names` the first ones, those with the most `passes` first; begin what is not known."""
        for name in names:
            if name not in self._rows:
                self._rows[name] = len(self._names)
                self._names.append(name)
                self._lengths.append(0)
                self._unread[name] = []
        self._cache.make_room(len(self._names), 0)
        come = sorted(range(len(names)), key=lambda i: (-passes[i], self._rows[names[i]]))
        sources = [self._rows[names[i]] for i in come]
        wanted = set(sources)
        displaced = [row for row in range(len(names)) if row not in wanted]
        vacated = sorted(row for row in wanted if row >= len(names))
        self._move([*range(len(names)), *vacated], [*sources, *displaced])

    def _close_up(self, owners: list[int], feed: list[list[int]]) -> tuple[list[int], list[list[int]]]:
        """Move the rows that still write to the front; returns their owners and feeds."""
        live = sum(map(bool, feed))
        idle = [row for row in range(live) if not feed[row]]
        behind = [row for row in range(live, len(feed)) if feed[row]]
        self._exchange(idle, behind)
        for one, other in zip(idle, behind, strict=True):
            owners[one], feed[one] = owners[other], feed[other]
        return owners[:live], feed[:live]

    def _read(self, feeds: Sequence[Sequence[int]]) -> torch.Tensor:
        """Feed the first rows (an empty feed leaves its row as it is); logits [rows, vocabulary] after each last id.

        Rows with the longest feeds come first: the others are not carried along while the rest of those is read.
        """
        import torch

        ends: list[torch.Tensor | None] = [None] * len(feeds)
        for start in range(0, max(map(len, feeds)), _WIDTH):
            rows = 1 + max(row for row, feed in enumerate(feeds) if len(feed) > start)
            hidden = self._read_part([feed[start : start + _WIDTH] for feed in feeds[:rows]])
            for row in range(rows):
                if start < len(feeds[row]) <= start + _WIDTH:
                    ends[row] = hidden[row, len(feeds[row]) - start - 1]
        nothing = torch.zeros(self._model.config.hidden_size, device=self._model.device, dtype=self._model.dtype)
        last = torch.stack([nothing if end is None else end for end in ends])
        return self._model.get_output_embeddings()(last).float()

    def _read_part(self, feeds: Sequence[Sequence[int]]) -> torch.Tensor:
        """Feed the first rows at once; hidden states [rows, longest feed, size]."""
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
        return hidden

    def _choose(
        self, logits: torch.Tensor, guides: Sequence[Guide | None], uniform: np.ndarray | None
    ) -> tuple[list[int], list[float]]:
        """One id a row, the most likely one or by inverse transform, and its log-probability."""
        import torch

        logprobs = torch.log_softmax(_guided(logits / self._temperature, guides), -1)
        if uniform is None:
            chosen = logprobs.argmax(-1, keepdim=True)
        else:
            # In single precision a draw just below 1 becomes 1; on a GPU a sum like this has no fixed order.
            cumulative = logprobs.exp().double().cpu().cumsum(-1)
            wanted = torch.as_tensor(uniform, dtype=cumulative.dtype)[:, None]
            chosen = torch.searchsorted(cumulative, wanted * cumulative[:, -1:], right=True)
            chosen = chosen.clamp(max=logits.shape[-1] - 1).to(logprobs.device)
        return chosen[:, 0].tolist(), logprobs.gather(-1, chosen)[:, 0].tolist()

    def _exchange(self, ones: Sequence[int], others: Sequence[int]) -> None:
        """Exchange rows pairwise."""
        self._move([*ones, *others], [*others, *ones])

    def _move(self, targets: Sequence[int], sources: Sequence[int]) -> None:
        """Bring the row of each source to its target, at the same time: targets and sources are the same rows."""
        moves = [(to, come) for to, come in zip(targets, sources, strict=True) if to != come]
        if not moves:
            return
        here, there = map(list, zip(*moves, strict=True))
        self._cache.move(here, there, max(self._lengths[row] for row in here))
        for by_row in (self._names, self._lengths):
            for to, value in zip(here, [by_row[row] for row in there], strict=True):
                by_row[to] = value
        for row in here:
            self._rows[self._names[row]] = row


def _guided(logits: torch.Tensor, guides: Sequence[Guide | None]) -> torch.Tensor:
    return among(logits, [guide and guide.allowed() for guide in guides])


def among(logits: torch.Tensor, allowed: Sequence[np.ndarray | None]) -> torch.Tensor:
    """`logits` [rows, vocabulary] with what a row is not allowed (None: it is allowed everything) at minus infinity."""
    import numpy as np
    import torch

    if all(row is None for row in allowed):
        return logits
    everything = np.ones(logits.shape[-1], dtype=bool)
    rows = np.stack([everything if row is None else row for row in allowed])
    return logits.masked_fill(~torch.from_numpy(rows).to(logits.device), -torch.inf)


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

    def move(self, here: Sequence[int], there: Sequence[int], length: int) -> None:
        for pair in self._layers:
            for kept in pair:
                kept[here, :, :length] = kept[there, :, :length]

    def _grown(self, kept: torch.Tensor) -> torch.Tensor:
        grown = kept.new_zeros((self._rows, kept.shape[1], self._length, kept.shape[3]))
        grown[: kept.shape[0], :, : kept.shape[2]] = kept
        return grown
