"""Consistent substitution of names and ids within one episode: what makes a small model copy instead of remember.

A string is replaced everywhere at once (instruction, arguments, observations, answer), so that the episode stays a
right solution of a world in which the thing is called otherwise. Only strings that the policy could have read before it
wrote them are touched; categories in lower case and dates, which decide what is called, are not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step

Steps = Sequence[tuple[Step, Observation | None]]

_FIXED = re.compile(r"[a-z][a-z _-]*|\d{4}-\d{2}.*|.|.{61,}", re.DOTALL)
"""Not names: lower-case words, dates, single characters, running text."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz" * 6 + "äöüéèáíóúñçøåãßłżőšč"


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What substitution works on: the instruction and the steps."""

    instruction: str
    steps: tuple[tuple[Step, Observation | None], ...]


def names_in(episode: Episode) -> list[str]:
    """The strings of an episode that may be called otherwise, sorted."""
    read = _Text(episode.instruction)
    names: set[str] = set()
    unread: set[str] = set()
    for step, observation in episode.steps:
        wrote = set(_strings([step.arguments, step.answer]))
        unread |= {text for text in wrote if not read.holds(text)}
        names |= wrote
        if observation is not None:
            seen = set(_strings(observation.value))
            names |= seen
            read.add(seen)
    return sorted(text for text in names - unread if not _FIXED.fullmatch(text))


def substituted(episode: Episode, pool: Sequence[str], rng: random.Random, *, invented: float = 0.5) -> Episode:
    """`episode` with every name replaced: by one of `pool`, or with chance `invented` by random letters."""
    renamed: dict[str, str] = {}
    for name in names_in(episode):
        new = _invented(name, rng) if not pool or rng.random() < invented else rng.choice(pool)
        if new not in renamed.values():
            renamed[name] = new
    if not renamed:
        return episode
    longest_first = sorted(renamed, key=lambda name: (-len(name), name))
    pattern = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w)")
    return _mapped(episode, lambda text: pattern.sub(lambda found: renamed[found.group()], text))


def _mapped(episode: Episode, change: Callable[[str], str]) -> Episode:
    steps = tuple(
        (
            replace(
                step,
                arguments=_map(step.arguments, change),
                answer=_map(step.answer, change),
                text=None if step.text is None else change(step.text),
                tokens=None,
            ),
            None if observation is None else replace(observation, value=_map(observation.value, change)),
        )
        for step, observation in episode.steps
    )
    return Episode(instruction=change(episode.instruction), steps=steps)


def _map(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map(item, change) for item in value]
    return value


def _strings(value: Json) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)


def _invented(name: str, rng: random.Random) -> str:
    """Random characters in the shape of `name`: capitals, digits and separators stay what they are."""
    return "".join(_like(character, rng) for character in name)


def _like(character: str, rng: random.Random) -> str:
    if character.isdigit():
        return rng.choice("0123456789")
    if character.isalpha():
        letter = rng.choice(_LETTERS)
        return letter.upper()[:1] if character.isupper() else letter
    return character


class _Text:
    """What the policy has read so far."""

    def __init__(self, instruction: str) -> None:
        self._instruction = instruction
        self._values: set[str] = set()

    def holds(self, text: str) -> bool:
        return text in self._values or text in self._instruction

    def add(self, values: Iterable[str]) -> None:
        self._values.update(values)
