"""Noun phrases: how an instruction calls a row, a set of rows and a fact, without a tool name or an identifier."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent_world.environments.model import Json

_OF = re.compile(r"((?:mean|lowest|highest|total|average|new) )?(\w+) of (?:the |an? )?((?:\w+ ){0,4}\w+)")

Comparison = Literal["is", "at least", "at most", "between", "same", "marked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """One row as a person refers to it. Exactly one of the ways is set.

    `name` is its quoted label, `code` a key that people use, `relation` (words, of what), `pick` a description that
    follows the article ("book with the most copies"), `phrase` a whole noun phrase ("each book of ..."), and `made`
    says that the task itself makes it.
    """

    noun: str
    name: str | None = None
    typed: bool = False
    code: str | None = None
    relation: tuple[str, Thing] | None = None
    pick: str | None = None
    phrase: str | None = None
    made: bool = False

    def say(self, *, typed: bool = False) -> str:
        """The noun phrase; `typed` asks for the noun beside a bare label."""
        if self.name is not None:
            return f'the {self.noun} "{self.name}"' if self.typed or typed else f'"{self.name}"'
        if self.code is not None:
            return f"{self.noun} {quote(self.code) if ' ' in self.code else self.code}"
        if self.relation is not None:
            words, owner = self.relation
            return f"the {words} of {owner.say()}"
        if self.phrase is not None:
            return self.phrase
        if self.pick is not None:
            return f"the {self.pick}"
        return f"the new {self.noun}" if self.made else f"the {self.noun}"

    def back(self) -> str:
        """How to refer to it once it has been mentioned."""
        if self.relation is not None:
            return f"that {bare(self.relation[0])}"
        return f"that {self.noun}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One restriction of a set: `words` compared with `value`, with the row `like`, or (same) with its own fact."""

    words: str
    comparison: Comparison
    value: Json = None
    like: Thing | None = None

    def say(self) -> str:
        """The restriction as it follows `whose`; the same fact of another row follows `with`, a mark the noun."""
        if self.comparison == "marked":
            return f"{'' if self.value else 'not '}marked {self.words}"
        if self.comparison == "same" and self.like is not None:
            return f"the same {self.words} as {self.like.say()}"
        if self.comparison == "between":
            low, high = self.value
            return f"{self.words} {be(self.words)} from {number(low)} to {number(high)}"
        if self.comparison == "is":
            return f"{self.words} {be(self.words)} {self.like.say() if self.like is not None else quote(self.value)}"
        return f"{self.words} {be(self.words)} {self.comparison} {number(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A set of rows of one table."""

    plural: str
    conditions: tuple[Condition, ...] = ()

    def say(self) -> str:
        """The noun phrase, with every restriction."""
        parts = {"marked": "", "same": " with", "is": " whose"}
        said = {lead: [] for lead in parts}
        for condition in self.conditions:
            said[condition.comparison if condition.comparison in said else "is"].append(condition.say())
        return self.plural + "".join(f"{parts[lead]} {listed(items)}" for lead, items in said.items() if items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something asked for: `words` of a row or of a set of rows, or words that stand alone (`about` is None)."""

    words: str
    about: Thing | Group | None = None

    def say(self) -> str:
        """The fact alone, as a noun phrase."""
        return tell([self])


@dataclass(frozen=True, slots=True, kw_only=True)
class Meet:
    """A row that the plan looks up."""

    thing: Thing


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A change that the user wants: a verb phrase in the imperative, and the row it makes or changes."""

    phrase: str
    about: Thing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Facts to report."""

    facts: tuple[Fact, ...]


def tell(facts: Sequence[Fact], *, known: Thing | None = None) -> str:
    """Facts as one noun phrase, those of one thing together: `the genre and the year of "Winter Maps"`.

    Facts about `known`, which was just mentioned, are told with `its`.
    """
    parts: list[str] = []
    for about, words in _together(facts):
        if about is None:
            parts += [f"the {item}" for item in words]
        elif about == known:
            parts.append(f"its {listed(words)}")
        else:
            owner = f"{'' if about.conditions else 'all '}{about.say()}" if isinstance(about, Group) else about.say()
            parts.append(f"{listed(f'the {item}' for item in words)} of {owner}")
    if len(parts) > 1 and any(" and " in part for part in parts):
        return f"{'; '.join(parts[:-1])}; and {parts[-1]}"
    return listed(parts)


def _together(facts: Sequence[Fact]) -> list[tuple[Thing | Group | None, list[str]]]:
    grouped: list[tuple[Thing | Group | None, list[str]]] = []
    for fact in facts:
        owner = next((words for about, words in grouped if about == fact.about), None)
        if owner is None:
            grouped.append((fact.about, [fact.words]))
        else:
            owner.append(fact.words)
    return grouped


def listed(items: Iterable[str], last: str = "and") -> str:
    """Items as a person lists them: `a, b and c`."""
    words = list(items)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def capital(text: str) -> str:
    """`text` with its first letter in upper case and the rest untouched."""
    return text[:1].upper() + text[1:]


def quote(value: Json) -> str:
    """A value of the data as an instruction shows it: texts in quotes, numbers plain."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f'"{value}"' if isinstance(value, str) else number(value)


def number(value: Json) -> str:
    """A number without a needless fraction; any other value as it is."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def be(words: str) -> str:
    """`is`, or `are` for words in the plural: `the copies are`."""
    return "are" if is_plural(words) else "is"


def is_plural(words: str) -> bool:
    """Whether `words` end in a plural, as `copies` do and `status`, `mass`, `basis` and `series` do not."""
    last = words.split()[-1].lower()
    return len(last) > 3 and last.endswith("s") and not last.endswith(("ss", "us", "is", "series", "species"))


def bare(words: str) -> str:
    """`words` without a trailing `id`, `code`, `key` or `number` that only machines need."""
    return re.sub(r"(?i)\s+(id|ids|code|key|ref|uuid)$", "", plain(words)) or words


def plain(words: str) -> str:
    """A compound as people say it: `departure delay` for `delay of departure`, `mean unit price` likewise."""
    match = _OF.fullmatch(words.strip())
    if match is None or (match[2] == "number" and match[3].split()[0].endswith("s")) or " of " in match[3]:
        return words.strip()
    return f"{match[1] or ''}{match[3]} {match[2]}"
