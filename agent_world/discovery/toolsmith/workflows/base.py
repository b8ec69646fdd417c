"""What a workflow overlay is, and when the data and the theme ask for one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from agent_world.discovery.toolsmith.answers.reads import value_of
from agent_world.discovery.toolsmith.drafts import Draft
from agent_world.discovery.toolsmith.fields import group_fields
from agent_world.discovery.toolsmith.view import Entity, Field, Row, View
from agent_world.discovery.toolsmith.words import ascii_words, snake
from agent_world.environments.model import Table


class ThemeWords(Protocol):
    """What the author takes from a theme."""

    @property
    def title(self) -> str:
        """What it is called."""
        ...

    @property
    def description(self) -> str:
        """What it is about."""
        ...

    @property
    def nouns(self) -> Sequence[str]:
        """Its words for things."""
        ...

    @property
    def verbs(self) -> Sequence[str]:
        """Its words for actions."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """An overlay that the data could carry: `subject` is the entity its records are about, `parts` what it found.

    `score` weighs the real values that its rules rest on (about 0 to 4), then the words of the theme (0 to 2).
    """

    score: float
    subject: Entity
    parts: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """A written overlay: the tables it adds, which start empty, and its tools with their tests.

    `entities` are the entities whose rows its tools must be told: what its records are about, and who holds them.
    """

    workflow: str
    entities: tuple[str, ...]
    tables: tuple[Table, ...]
    drafts: tuple[Draft, ...]


class Workflow(Protocol):
    """One kind of overlay: a module with these names."""

    NAME: str

    def fits(self, view: View, theme: ThemeWords) -> list[Fit]:
        """Where the data could carry it."""
        ...

    def write(self, view: View, fit: Fit, theme: ThemeWords, rng: Random) -> Overlay:
        """The overlay for a fit of its own."""
        ...


def theme_score(theme: ThemeWords, nouns: Sequence[str], verbs: Sequence[str]) -> float:
    """How much the words of a theme ask for an overlay: nouns and verbs it names, at most 2."""
    said_nouns = {word for noun in theme.nouns for word in ascii_words(noun)}
    said_verbs = {word for verb in theme.verbs for word in ascii_words(verb)}
    named = sum(noun in said_nouns or f"{noun}s" in said_nouns for noun in nouns)
    done = sum(verb in said_verbs for verb in verbs)
    return min(2.0, 0.5 * named + 0.7 * done)


def said_verb(theme: ThemeWords, *verbs: str) -> str:
    """The first of `verbs` that the theme itself uses, else the first."""
    said = {word for verb in theme.verbs for word in ascii_words(verb)}
    return next((verb for verb in verbs if verb in said), verbs[0])


def named_by(theme: ThemeWords, entity: Entity) -> bool:
    """Whether the theme speaks of an entity."""
    said = {word for noun in (*theme.nouns, theme.title) for word in ascii_words(noun)}
    return all(word in said or f"{word}s" in said for word in ascii_words(entity.one))


def free_noun(view: View, *nouns: str) -> str:
    """The first of `nouns` (singular) that neither a table nor an entity of the data has already."""
    taken = {
        part for table in view.database.tables for part in (snake(table.singular), snake(table.plural), table.name)
    }
    return next(
        (noun for noun in nouns if snake(noun) not in taken and f"{snake(noun)}s" not in taken), f"{nouns[0]} record"
    )


def words_of(entity: Entity) -> set[str]:
    """The words of an entity's name, singular."""
    return {word for word in ascii_words(entity.one)}


def upper_quarter(values: Sequence[float]) -> float | None:
    """One of `values`, a round one if it can be, from which on about a quarter of them lie; None when there is none."""
    known = sorted(values)
    if len(set(known)) < 8:
        return None
    cut = known[int(0.75 * len(known))]
    size = abs(cut)
    step = 10 ** max(0, len(str(int(size))) - 2) if size >= 10 else 1
    round_cut = math.ceil(cut / step) * step if size >= 1 else cut
    for bound in (round_cut, cut):
        if bound in known and 0.05 * len(known) <= sum(value >= bound for value in known) <= 0.5 * len(known):
            return bound
    return None


def first_bound(entity: Entity, fields: Sequence[Field]) -> tuple[Field, float] | None:
    """The first of `fields` whose values a bound parts, with that bound."""
    for quantity in fields:
        bound = upper_quarter(entity.values(quantity.column))
        if bound is not None:
            return quantity, bound
    return None


def around(entity: Entity, field: Field) -> list[Row]:
    """Rows from the smallest value of `field` to the largest, those without one first: a bound then parts them."""
    return sorted(entity.rows, key=lambda row: (row[field.column.name] is not None, row[field.column.name] or 0))


def dividing_category(entity: Entity) -> Field | None:
    """The category that divides an entity into a few parts that are large enough to choose from."""
    for group in group_fields(entity):
        if group.column.role == "flag" or group.column.type != "text":
            continue
        counts = Counter(value for row in entity.rows if (value := value_of(row, group)) is not None)
        large = [value for value, count in counts.items() if count >= 3]
        if len(large) >= 2 and len(large) >= 0.5 * len(counts) and counts.total() >= 0.7 * len(entity.rows):
            return group
    return None
