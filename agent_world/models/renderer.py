"""Between turns and token ids: one protocol, kept by one renderer for the tiny policy and one for chat templates.

A renderer begins a script for each episode, which keeps what the rendering of a step depends on: the tiny policy refers
to what it has read. A context is what the policy reads and writes in one episode: the prompt, then alternately the ids
that the policy wrote and the ids of what came back. Every renderer builds it by appending, never by writing an earlier
part anew, so that a key-value cache stays valid and the loss mask is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agent_world.environments.model import Json
from agent_world.models.grammar import Guide
from agent_world.rollouts.model import Observation, Step, Turn

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedTokenizerBase


class Renderer(Protocol):
    """Begins scripts.

    `stops` are the ids with which the policy ends a step; `closing` stands in for one that was cut off; `pad` fills.
    `longest_step` is how many ids a step may have unless its policy is told otherwise.
    """

    stops: frozenset[int]
    closing: int
    pad: int
    longest_step: int

    def begin(self, turn: Turn) -> Script:
        """The script of the episode that begins with `turn` (whose history is not looked at)."""
        ...


class Script(Protocol):
    """One episode between turns and ids; what it reads it must be given in order.

    `prompt` is what the policy reads before its first step.
    """

    prompt: list[int]

    def step(self, step: Step) -> list[int]:
        """What the policy writes to take `step`, its stop included."""
        ...

    def parse(self, ids: Sequence[int]) -> Step:
        """The step that the policy took by writing `ids`; never raises: what is no step is `malformed`."""
        ...

    def guide(self) -> Guide | None:
        """What holds the policy to well-formed steps while it writes the next one; None lets it write anything."""
        ...

    def observation(self, step: Step, observation: Observation) -> list[int]:
        """What the policy reads between the stop of `step` and its next step."""
        ...


class Transcript(NamedTuple):
    """An episode as one sequence: `ids` [T], `written` [T], true where the policy wrote, `prompt` ids before that.

    `allowed`, where it was asked for, holds for each written id what the policy chose from, bool [vocabulary], or None
    for anything.
    """

    ids: list[int]
    written: list[bool]
    prompt: int
    allowed: Sequence[np.ndarray | None] = ()


def transcript(
    renderer: Renderer, script: Script, steps: Sequence[tuple[Step, Observation | None]], *, choices: bool = False
) -> Transcript:
    """The context after `steps` of the episode whose `script` has just begun; with `choices` also what was allowed.

    Steps that carry their own ids keep them; the others, from solvers and demonstrations, are rendered.
    """
    ids = list(script.prompt)
    written = [False] * len(ids)
    allowed: list[np.ndarray | None] = []
    for step, observation in steps:
        guide = script.guide() if choices else None  # before the step is rendered, which may refer to something new
        wrote = list(step.tokens.ids) if step.tokens else script.step(step)
        allowed += _choices(guide, wrote) if choices else []
        came_back = [] if observation is None else observed(renderer, script, wrote, step, observation)
        ids += wrote + came_back
        written += [True] * len(wrote) + [False] * len(came_back)
    return Transcript(ids, written, len(script.prompt), allowed)


def _choices(guide: Guide | None, wrote: Sequence[int]) -> list[np.ndarray | None]:
    """What could have been written at each place of a step; where something else was, anything could."""
    if guide is None:
        return [None] * len(wrote)
    found: list[np.ndarray | None] = []
    for id in wrote:
        allowed = guide.allowed()
        found.append(allowed if allowed[id] else None)
        guide.advance(id)
    return found


def observed(
    renderer: Renderer, script: Script, wrote: Sequence[int], step: Step, observation: Observation
) -> list[int]:
    """The ids that follow a step: its end where the policy left none, then the observation."""
    ended = bool(wrote) and wrote[-1] in renderer.stops
    return ([] if ended else [renderer.closing]) + script.observation(step, observation)


def renderer_for(tokenizer: PreTrainedTokenizerBase) -> Renderer:
    """The renderer that fits a tokenizer: tiny policies are known by their marks, others need a chat template."""
    from agent_world.models.chat_renderer import ChatTemplateRenderer
    from agent_world.models.tiny_renderer import TinyRenderer

    if set(TinyRenderer.MARKS) <= set(tokenizer.get_vocab()):
        return TinyRenderer(tokenizer)
    return ChatTemplateRenderer(tokenizer)


def ordered(value: Json) -> Json:
    """`value` with the keys of its records in order, scalars first: a trajectory of the lake does not keep another."""
    return _sorted(value, lambda item: (isinstance(item[1], (Mapping, list, tuple)), item[0]))


def by_name(value: Json) -> Json:
    """`value` with the keys of its records by name, as the grammar wants them."""
    return _sorted(value, lambda item: item[0])


def _sorted(value: Json, key: Callable[[tuple[str, Json]], Any]) -> Json:
    if isinstance(value, Mapping):
        return {name: _sorted(item, key) for name, item in sorted(value.items(), key=key)}
    return [_sorted(item, key) for item in value] if isinstance(value, (list, tuple)) else value
