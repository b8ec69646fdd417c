"""What a noun phrase stands for, as a tree: things by name, sets of them, the one that stands out, and their facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agent_world.environments.model import Json
from agent_world.solver.model import Operator

Words = tuple[str, ...]
"""Folded words in their order."""

Noun = tuple[str, ...]
"""The stems of the words for a kind of thing: ``("support", "rep")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One thing by its name, code or number: `flight 12`, `the airport "Oslo"`; without a noun a bare name.

    `within` are the words for what it is a part of: `the entry "NO" in the sheet of countries`.
    """

    noun: Noun | None
    text: str
    value: Json
    within: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Several:
    """Things named in a row."""

    parts: tuple[Named, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """What was spoken of before: `that flight`, `it`, `them`; `whole` means all of them, before any were sorted out."""

    noun: Noun | None = None
    plural: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What the things of a group have in common: the fact `words` is, reaches or stays below `value`.

    `like` asks for the same fact as another thing has, `marked` for a yes (or no, with `negated`).
    """

    words: Words
    operator: Operator | Literal["same", "like", "marked"]
    value: Json | Term = None
    upper: Json = None
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """All things of a kind that meet the conditions; `of` narrows them to some that were spoken of."""

    noun: Noun
    conditions: tuple[Condition, ...] = ()
    of: Term | None = None
    plural: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The one with the most (or least) of a fact; without words the first (or last) by name.

    `compared` says that a comparative picked it, which takes things to compare. An `adjective` says itself what counts:
    the longer of two songs.
    """

    of: Term
    words: Words
    more: bool
    compared: bool = False
    adjective: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A fact of a thing."""

    words: Words
    of: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """What a thing is called."""

    of: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What the orders made or changed: `the new loan`; without a noun whatever the last one was about."""

    noun: Noun | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The size of a set."""

    of: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The highest, lowest, mean or sum of a fact over things, or how far apart the highest and the lowest are."""

    summary: Literal["highest", "lowest", "mean", "sum", "difference"]
    words: Words
    of: Term


Term = Named | Several | Back | Group | Best | Attribute | Which | Made | Count | Figure


def noun_of(term: Term) -> Noun | None:
    """The kind of thing that a term is about, when it says so."""
    if isinstance(term, Named | Back | Group | Made):
        return term.noun
    if isinstance(term, Several):
        return term.parts[0].noun
    return noun_of(term.of)
