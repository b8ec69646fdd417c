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
    beside it (up to the rounding of batched arithmetic). One step writes at most `max_step` ids, an episode's context
    holds at most `max_context`; beyond it steps are malformed.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        renderer: Renderer,
        *,
        name: str,
        version: str,
        temperature: float = 1.0,
        max_step: int = 128,
        max_context: int | None = None,
    ) -> None:
        self.name, self.version, self.temperature = name, version, temperature
        self._model, self._renderer, self._max_step = model, renderer, max_step
        limit = model.config.max_position_embeddings
        self._decoder = Decoder(
            model,
            stops=renderer.stops,
            pad=renderer.pad,
            context=min(limit, max_context or limit),
            temperature=temperature or 1.0,
        )
        self._wrote: dict[str, list[int]] = {}
        self._scripts: dict[str, Script] = {}

    @classmethod
    def load(cls, directory: str | Path, *, version: str, name: str = "local", temperature: float = 1.0) -> Self:
        """The policy in a Hugging Face model directory; nothing is fetched.

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
        return cls(model.eval(), renderer_for(tokenizer), name=name, version=version, temperature=temperature)

    def at(self, temperature: float) -> LocalPolicy:
        """The same model at another temperature."""
        return LocalPolicy(
            self._model,
            self._renderer,
            name=self.name,
            version=self.version,
            temperature=temperature,
            max_step=self._max_step,
            max_context=self._decoder.context,
        )

    def act(self, turns: Sequence[Turn]) -> list[Step]:
        """One step a turn, all generated together."""
        steps: list[Step | None] = [None] * len(turns)
        feeds: dict[int, list[int]] = {}
        for index, turn in enumerate(turns):
            feed = self._feed(turn)
            if (self._decoder.length(turn.episode) or 0) + len(feed) + self._max_step > self._decoder.context:
                steps[index] = Step(kind="malformed", text=CONTEXT_FULL, tokens=Tokens(ids=(), logprobs=()))
            else:
                feeds[index] = feed
        if feeds:
            live = [turns[index] for index in feeds]
            draws = None if self.temperature == 0 else self._draws(live)
            names = [turn.episode for turn in live]
            guides = [self._scripts[turn.episode].guide() for turn in live]
            written = self._decoder.write(names, list(feeds.values()), draws, at_most=self._max_step, guides=guides)
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

    def _feed(self, turn: Turn) -> list[int]:
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
