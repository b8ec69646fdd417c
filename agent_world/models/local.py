"""A policy that runs in this process: a causal language model, its tokenizer, and a renderer between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from agent_world.errors import BadInputError
from agent_world.identity import seed_of
from agent_world.models.decoding import Decoder
from agent_world.models.renderer import Renderer, Script, observed, renderer_for, transcript
from agent_world.rollouts.model import Step, Tokens, Turn

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedModel

CONTEXT_FULL = "the context limit of the model is reached"


class LocalPolicy:
    """A `Policy` over a live model; steps carry their ids and log-probabilities.

    The policy is the model among what its renderer's guide allows, where there is one. `temperature` 0 takes the most
    likely ids, 1 samples its own distribution. What a sample becomes depends on `turn.seed` alone, not on the episodes
    beside it (up to the rounding of batched arithmetic).

    One step writes at most `max_step` ids, by default what suits the renderer but no more than a quarter of the
    context; an episode's context holds at most `max_context`, by default what the model's configuration says. When a
    context has no room for what came back and a step, it stays full: all further steps of the episode are malformed.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        renderer: Renderer,
        *,
        name: str,
        version: str,
        temperature: float = 1.0,
        max_step: int | None = None,
        max_context: int | None = None,
    ) -> None:
        self.name, self.version, self.temperature = name, version, temperature
        self._renderer = renderer
        limit = model.config.max_position_embeddings
        context = min(limit, max_context or limit)
        self._max_step = max_step or min(renderer.longest_step, context // 4)
        self._decoder = Decoder(
            model, stops=renderer.stops, pad=renderer.pad, context=context, temperature=temperature or 1.0
        )
        self._wrote: dict[str, list[int]] = {}
        self._scripts: dict[str, Script] = {}
        self._full: set[str] = set()

    @classmethod
    def load(
        cls,
        directory: str | Path,
        *,
        version: str,
        name: str = "local",
        temperature: float = 1.0,
        max_step: int | None = None,
        max_context: int | None = None,
    ) -> Self:
        """The policy in a Hugging Face model directory, on a GPU where there is one; nothing is fetched.

        Raises:
            BadInputError: it is no such directory.
        """
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()  # a bar for each of hundreds of loads of four megabytes
        try:
            tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
            model = AutoModelForCausalLM.from_pretrained(directory, local_files_only=True, dtype="auto")
        except (OSError, ValueError) as error:
            why = f"not a model directory ({str(error).splitlines()[0]})"
            raise BadInputError(str(directory), why, "give a directory that save_pretrained wrote") from error
        return cls(
            model.eval().to(device()),
            renderer_for(tokenizer),
            name=name,
            version=version,
            temperature=temperature,
            max_step=max_step,
            max_context=max_context,
        )

    def act(self, turns: Sequence[Turn]) -> list[Step]:
        """One step a turn, all generated together."""
        steps: list[Step | None] = [None] * len(turns)
        feeds: dict[int, list[int]] = {}
        for index, turn in enumerate(turns):
            feed = self._feed(turn)
            if feed is None:
                steps[index] = Step(kind="malformed", text=CONTEXT_FULL, tokens=Tokens(ids=(), logprobs=()))
            else:
                feeds[index] = feed
        if feeds:
            live = [turns[index] for index in feeds]
            draws = None if self.temperature == 0 else self._draws(live)
            names = [turn.episode for turn in live]
            guides = [self._scripts[turn.episode].guide() for turn in live]
            try:
                written = self._decoder.write(names, list(feeds.values()), draws, at_most=self._max_step, guides=guides)
            except BaseException:
                self.forget(names)  # who was read to in part would be read the same again
                raise
            for index, turn, (ids, logprobs) in zip(feeds, live, written, strict=True):
                self._wrote[turn.episode] = ids
                tokens = Tokens(ids=tuple(ids), logprobs=tuple(logprobs))
                steps[index] = replace(self._scripts[turn.episode].parse(ids), tokens=tokens)
        return [step for step in steps if step is not None]

    def forget(self, episodes: Sequence[str]) -> None:
        """Free what is kept of these episodes."""
        for episode in episodes:
            self._decoder.drop(episode)
            self._wrote.pop(episode, None)
            self._scripts.pop(episode, None)
            self._full.discard(episode)

    def _feed(self, turn: Turn) -> list[int] | None:
        """What the model reads before its next step; None when the context is full.

        A full one stays so although something shorter may come: the policy would go on without what it has not read.
        """
        if turn.episode in self._full:
            return None
        feed = self._unread(turn)
        if (self._decoder.length(turn.episode) or 0) + len(feed) + self._max_step > self._decoder.context:
            self._full.add(turn.episode)
            return None
        return feed

    def _unread(self, turn: Turn) -> list[int]:
        """What the model has not read yet: of a known episode the observation, else everything so far."""
        wrote = self._wrote.get(turn.episode)
        if wrote is None or self._decoder.length(turn.episode) is None:
            script = self._scripts[turn.episode] = self._renderer.begin(turn)
            return transcript(self._renderer, script, turn.history).ids
        step, observation = turn.history[-1]
        return observed(self._renderer, self._scripts[turn.episode], wrote, step, observation)

    def _draws(self, turns: Sequence[Turn]) -> np.ndarray:
        import numpy as np

        seeds = [seed_of(turn.seed, len(turn.history)) for turn in turns]
        return np.stack([np.random.Generator(np.random.Philox(seed)).random(self._max_step) for seed in seeds])


def device() -> str:
    """Where models run in this process: on a GPU where torch finds one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
