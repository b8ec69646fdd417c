"""Who the agent talks to in an episode: a simulated user, and what he knows and wants (method.md: ``s_H``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from agent_world.tasks.model import Task, Wish

NOTHING_TO_ADD = "I have nothing to add. Please do what I asked and give the answer."

_CANNOT = (
    "cannot", "can't", "could not", "couldn't", "impossible", "not possible", "unavailable", "not available", "unable",
    "no longer", "sold out", "not allowed", "refused", "there is no", "there are no",
)  # fmt: skip
_APOSTROPHE = re.compile("['\u2019]")
_WORD = re.compile(r"[^\W_]+")


class User(Protocol):
    """Plays the user of one episode: holds `s_H`, hears replies, never touches `s_E`."""

    def reply(self, text: str) -> str:
        """What the user says to `text`."""
        ...


Users = Callable[[Task, int], User]
"""Makes the user of an episode, for its task and the policy's seed."""


class ScriptedUser:
    """Tells what it is asked for, by the words of each wish.

    What is told once is repeated as such. When the agent says that something cannot be, the user insists on a
    constraint and gives up a preference. `told` and `given_up` are its `s_H`.
    """

    def __init__(self, wishes: Sequence[Wish] = ()) -> None:
        self._wishes = tuple(wishes)
        self.told: set[Wish] = set()
        self.given_up: set[Wish] = set()

    def reply(self, text: str) -> str:
        """One sentence for each wish that `text` asks for, in the order of the wishes."""
        heard = _words(text)
        refused = any(_says(heard, phrase) for phrase in _CANNOT)
        asked = [wish for wish in self._wishes if any(_says(heard, phrase) for phrase in wish.words)]
        return " ".join(self._about(wish, refused) for wish in asked) or NOTHING_TO_ADD

    def _about(self, wish: Wish, refused: bool) -> str:
        known = wish in self.told
        self.told.add(wish)
        if refused and wish.kind == "preference":
            self.given_up.add(wish)
        if wish in self.given_up:
            return f"I would have liked it, but you may do without this: {wish.text}"
        if refused and wish.kind == "constraint":
            return f"I must insist: {wish.text}"
        return f"As I said: {wish.text}" if known else wish.text


def scripted(task: Task, _seed: int) -> User:
    """The user that the task itself describes."""
    return ScriptedUser(task.user)


def _words(text: str) -> str:
    """The words of `text` with a space before and behind each; ``can't`` is one word."""
    return f" {' '.join(_WORD.findall(_APOSTROPHE.sub('', text.casefold())))} "


def _says(heard: str, phrase: str) -> bool:
    return _words(phrase) in heard
