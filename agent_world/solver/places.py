"""Where a constraint could go: a parameter, a parameter of a tool that feeds it, or a filter on rows; with scores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from agent_world.environments.model import Json
from agent_world.solver.fields import Bag, Field, Parameter, merge
from agent_world.solver.index import IndexedTool, Link, Toolbox
from agent_world.solver.lexicon import fold, split_words, stem
from agent_world.solver.mentions import looks_like_code
from agent_world.solver.model import Compare, Constraint, Extreme, Mention
from agent_world.solver.query import Blame, Place

DEPTH = 3
"""How many tools may stand one behind the other to feed a parameter."""

SUMMED = frozenset(map(stem, ("mean", "average", "avg", "sum", "median")))
LABELS = frozenset(map(stem, ("name", "title", "label")))
_DATES = frozenset(
    map(stem, ("date", "day", "year", "time", "born", "founded", "published", "released", "departure", "hour"))
)
_ID = frozenset({stem("id")})
_PEOPLE = frozenset(
    map(
        stem,
        tuple(
            (
                "person people passenger patient member customer nurse doctor employee student player guest"
                " reader holder assignee worker borrower buyer client user reviewer"
            ).split()
        ),
    )
)
_CODED = frozenset(map(stem, ("code", "abbreviation", "symbol")))
_RANKS = frozenset(map(stem, ("rank", "position", "place", "spot")))
_NUMBERED = frozenset(map(stem, ("number", "code", "id", "zip", "postcode", "postal", "year")))
_DOWNWARD = frozenset(("highest largest descending desc most high biggest greatest longest newest latest").split())
_UPWARD = {"lowest", "smallest", "ascending", "asc", "least", "low", "fewest", "shortest", "oldest", "earliest"}
_REACHED = 3  # places kept of a tool that feeds another one


class Give(NamedTuple):
    """The constraint is the argument for a parameter, or for a pair of them that are the ends of a span."""

    parameter: Parameter
    twin: Parameter | None = None


class Feed(NamedTuple):
    """The constraint chooses, at the place `inner` in another tool's call, what is given to a parameter."""

    parameter: Parameter
    link: Link
    inner: Slot


class Sort(NamedTuple):
    """The constraint is a superlative that a parameter can sort by: the first rows are the answer."""

    parameter: Parameter
    value: Json
    place: Place


class Known(NamedTuple):
    """The constraint found earlier what is now given to a parameter; it needs no place of its own."""

    parameter: Parameter
    value: Json


class Select(NamedTuple):
    """The constraint filters rows by the value at a place, or orders them."""

    place: Place


Slot = Give | Feed | Sort | Known | Select


KnownSlots = dict[tuple[int, str, int, bool], tuple[Constraint, list[tuple[float, Slot]]]]
"""By the constraint's identity, tool, depth and `check`; the constraint is kept so that its identity stays its own."""


@dataclass(slots=True)
class Places:
    """Scores places over one toolbox; `banned` are assignments that were tried in vain.

    `unbanned` is what was found without a ban: the same for all who read the same constraints, so they may share it.
    """

    box: Toolbox
    unbanned: KnownSlots
    banned: set[Blame] = field(default_factory=set)
    _under_ban: KnownSlots = field(default_factory=dict)

    def ban(self, blames: set[Blame]) -> None:
        """Does without these assignments from now on."""
        self.banned |= blames
        self._under_ban.clear()

    def unban(self, blames: set[Blame]) -> None:
        """Takes a ban back."""
        self.banned -= blames
        self._under_ban.clear()

    def slots(
        self, constraint: Constraint, tool: IndexedTool, depth: int, check: bool = False
    ) -> list[tuple[float, Slot]]:
        """Where `constraint` could go in a call of `tool`, best first; with `check` also fields of a single record."""
        key = (id(constraint), tool.name, depth, check)
        known = self._under_ban if self.banned else self.unbanned
        if key not in known:
            found = sorted(self._slots(constraint, tool, depth, check), key=lambda pair: -pair[0])
            known[key] = constraint, found
        return known[key][1]

    def best(self, constraint: Constraint, tool: IndexedTool, depth: int) -> float:
        """The score of the best place; 0 when there is none."""
        found = self.slots(constraint, tool, depth)
        return found[0][0] if found else 0.0

    def _slots(
        self, constraint: Constraint, tool: IndexedTool, depth: int, check: bool
    ) -> Iterator[tuple[float, Slot]]:
        for parameter in tool.parameters:
            score = self.fit(constraint, parameter, tool)
            if score is not None:
                yield score, Give(parameter, self._twin(constraint, parameter, tool))
            if isinstance(constraint, Extreme) and parameter.role == "order":
                yield from self._sorts(constraint, parameter, tool)
            plain = parameter.role != "id" and not (_CODED | _ID) & set(parameter.words)
            if plain and (tool.writes or depth):
                continue
            if (depth + 1 < DEPTH and not isinstance(constraint, Compare)) or depth == 0:
                for link in self.box.links.get((tool.name, parameter.name), ()):
                    if link.tool.writes or depth + 1 >= DEPTH:
                        continue
                    near = self.box.touch(constraint.context, parameter.words)
                    if plain:
                        near -= 2.0  # a plain value is mostly meant as it stands
                    for score, inner in self.slots(constraint, link.tool, depth + 1)[:_REACHED]:
                        yield 0.75 * score + 0.2 * near + 0.3 * (link.strength - 1) - 0.02, Feed(parameter, link, inner)
        if not tool.writes:
            yield from self._rows(constraint, tool, check)

    def _twin(self, constraint: Constraint, parameter: Parameter, tool: IndexedTool) -> Parameter | None:
        """The other end of the span that `parameter` begins or ends, when the constraint says something about both."""
        ends = {"low": "high", "high": "low"}
        if not isinstance(constraint, Compare) or parameter.role not in ends:
            return None
        own = parameter.words.keys()
        others = [(len(own & one.words.keys()), one) for one in tool.parameters if one.role == ends[parameter.role]]
        shared, twin = max(others, key=lambda pair: pair[0], default=(0, None))
        told = twin is not None and (constraint.operator in ("between", "eq") or twin.required)
        return twin if shared and told else None

    def _sorts(self, constraint: Extreme, parameter: Parameter, tool: IndexedTool) -> Iterator[tuple[float, Slot]]:
        """Sorting parameters that choose between the largest and the smallest first."""
        up, down = rising_and_falling(parameter)
        if up is None or down is None:
            return
        for one in tool.fields:
            score = self.fit_field(constraint, one, tool) if one.item else None
            if score is not None and set(one.names) <= set(tool.words):
                more = agrees(self.box, constraint, one.words) if constraint.degrees else constraint.more
                yield score + 0.2, Sort(parameter, up if more else down, Place(field=one))

    def _rows(self, constraint: Constraint, tool: IndexedTool, check: bool) -> Iterator[tuple[float, Slot]]:
        """Where `constraint` could select among the rows that `tool` gives."""
        barred = {
            name
            for text, barrer, name in self.banned
            if barrer == tool.name and isinstance(constraint, Mention) and text == constraint.text
        }
        for one in tool.fields:
            score = self.fit_field(constraint, one, tool, check) if one.name not in barred else None
            if score is not None:
                yield score, Select(Place(field=one))
        for detail in self.box.details.get(tool.name, ()):
            if detail[0].items or (not tool.items and not isinstance(constraint, Extreme)):
                continue
            for one in detail[0].fields:
                if (
                    one.item
                    or one.name in barred
                    or (
                        any(one.name == other.name for other in tool.fields)
                        and not isinstance(constraint, Extreme | Compare)
                    )
                ):
                    continue
                score = self.fit_field(constraint, one, detail[0], True)
                if score is not None:
                    yield 0.85 * score - 0.05, Select(Place(field=one, detail=detail))

    def fit(self, constraint: Constraint, parameter: Parameter, tool: IndexedTool) -> float | None:
        """How well a constraint goes to a parameter, about 0 to 1.3; None when it cannot."""
        if parameter.role in ("page", "size", "order"):
            return None
        if isinstance(constraint, Compare):
            return self._fit_limit(constraint, parameter, tool)
        if isinstance(constraint, Extreme):
            first = constraint.more and not constraint.degrees and not constraint.context
            return 0.9 if first and tool.writes and parameter.numeric and _RANKS & set(parameter.words) else None
        if (constraint.text, tool.name, parameter.name) in self.banned:
            return None
        near = self.box.touch(constraint.context, merge(parameter.words, {w: 0.5 * v for w, v in tool.nouns.items()}))
        value, role = constraint.value, parameter.role
        if parameter.enum:
            own = self.box.touch(constraint.context, parameter.words)
            if not any(same_text(one, value) for one in parameter.enum):
                return None
            if constraint.kind == "number":
                return 0.5 + 0.7 * own if own > 0.3 else None
            return 1.0 + 0.3 * own
        if fold(str(value)) in parameter.examples:
            return 1.1 + 0.3 * near
        if constraint.kind == "value":
            own = self.box.touch(constraint.context, parameter.words)
            return {"text": 0.25 + 0.4 * own, "search": 0.1 + 0.2 * own}.get(role)
        if constraint.kind == "number":
            own = self.box.touch(constraint.context, parameter.words)
            if parameter.numeric and role == "number":
                bare = tool.writes and not any(weight > 0.5 for weight in constraint.context.values())
                return 0.3 + 0.7 * own if own > 0.2 or bare else None
            beside = {word: weight for word, weight in constraint.context.items() if weight == 1.0}
            own = self.box.touch(beside, parameter.words)
            if constraint.numbered and role == "id" and parameter.numeric:
                return 0.5 + 0.5 * own
            coded = role == "id" or (role == "text" and _NUMBERED & set(parameter.words))
            return 0.3 + 0.6 * own if coded and own > 0.6 and not constraint.text.isalpha() else None
        if constraint.kind == "date":
            if parameter.numeric:
                return None
            return 0.8 + 0.2 * near if role == "date" or _DATES & set(parameter.words) else None
        if parameter.numeric:
            return 0.5 if role == "id" and as_number(value) is not None else None
        code = looks_like_code(constraint.text)
        if role == "id":
            made = any(link.tool.writes for link in self.box.links.get((tool.name, parameter.name), ()))
            return (0.3 if made else 0.6) + 0.4 * near if code else None
        person = 0.0
        if _PEOPLE & (parameter.words.keys() | tool.nouns.keys()):
            person = (
                -0.4
                if re.search(r"\d", constraint.text)
                else 0.06
                if " " in constraint.text and not constraint.quoted
                else -0.06
            )
        if role == "search":
            return (0.45 if code else 0.65) + 0.35 * near + person
        if role == "date":
            return None
        if _CODED & set(parameter.words):
            return 0.55 + 0.45 * near if code else None
        if role in ("text", "low", "high"):
            return 0.35 + 0.6 * near + person if role == "text" else None
        return None

    def fit_field(self, constraint: Constraint, one: Field, tool: IndexedTool, detail: bool = False) -> float | None:
        """How well a constraint selects by the values of a field; None when it cannot."""
        if isinstance(constraint, Compare | Extreme):
            dated = bool(_DATES & set(one.words)) and not one.numeric
            if not (one.numeric or (dated and (isinstance(constraint, Extreme) or isinstance(constraint.value, str)))):
                return None
            if one.key or (tool.items and not one.item):
                return None
            score = self.measured(constraint, one)
            if one.counts and isinstance(constraint, Extreme) and not constraint.degrees:
                score = max(score, 0.5)  # "the most models" is the largest number of them
            if isinstance(constraint, Extreme) and SUMMED & set(one.names) and not SUMMED & constraint.context.keys():
                score -= 0.25  # the largest of all is not the one with the largest mean
            return 0.2 + 0.8 * score if score > 0.3 else None
        if not tool.items and not detail:
            return None
        if one.numeric or (not one.item and tool.items):
            return None
        if (_CODED | _ID) & set(one.words) and not looks_like_code(constraint.text):
            return None
        near = self.box.touch(constraint.context, one.words)
        if constraint.kind == "value":
            return 0.35 + 0.5 * near
        if one.enum and not any(same_text(value, constraint.value) for value in one.enum):
            return None
        if constraint.kind == "name" and not _DATES & set(one.names):
            paged = 0.1 if tool.pages else 0.0
            if LABELS & set(one.names):
                near = max(near, self.box.touch(constraint.context, tool.nouns))
                return 0.35 + 0.4 * near - paged
            return 0.05 + 0.65 * near - paged if near > 0.3 else None
        return 0.15 + 0.6 * near if constraint.kind == "date" and _DATES & set(one.words) else None

    def _fit_limit(self, constraint: Compare, parameter: Parameter, tool: IndexedTool) -> float | None:
        wanted = {"gt": "low", "ge": "low", "lt": "high", "le": "high"}.get(constraint.operator)
        if parameter.role not in ("low", "high"):
            if constraint.operator == "eq" and parameter.role == "number":
                return 0.2 + 0.8 * self.measured(constraint, parameter)
            return None
        if wanted is None:
            paired = self._twin(constraint, parameter, tool) is not None
            wanted = "low" if paired else parameter.role if constraint.operator == "between" else ""
        if wanted is not None and constraint.degrees and not agrees(self.box, constraint, parameter.words):
            wanted = "high" if wanted == "low" else "low"
        if wanted is not None and wanted != parameter.role:
            return None
        score = self.measured(constraint, parameter)
        if isinstance(constraint.value, int) and not parameter.numeric:
            score *= 0.85  # a year may be told of where the day is not known
        return 0.3 + 0.85 * score if score > 0.3 else None

    def measured(self, constraint: Compare | Extreme, one: Field | Parameter) -> float:
        """How well a field is what a comparison or superlative is about."""
        told = self.box.touch(constraint.context, one.words)
        degree = max(
            (
                1.0 if word in one.words else 0.75 * self.box.closest(word, one.words)
                for entry in constraint.degrees
                for word in entry.of
            ),
            default=0.0,
        )
        if constraint.degrees:
            told *= 0.6 if isinstance(constraint, Extreme) and degree < 0.5 else 0.9
        dated = (
            0.75 if isinstance(constraint, Compare) and is_yearly(constraint.value) and _DATES & set(one.words) else 0.0
        )
        return max(told, 0.95 * degree, dated)


def rising_and_falling(parameter: Parameter) -> tuple[Json, Json]:
    """The values of a sorting parameter that put the largest and the smallest first; None where it has none."""
    largest = next((value for value in parameter.enum if set(split_words(str(value))) & _DOWNWARD), None)
    smallest = next((value for value in parameter.enum if set(split_words(str(value))) & _UPWARD), None)
    return largest, smallest


def agrees(box: Toolbox, constraint: Compare | Extreme, words: Bag) -> bool:
    """The direction of the degree that fits the words best; True when it has none."""
    best = max(constraint.degrees, default=None, key=lambda degree: max(box.closest(word, words) for word in degree.of))
    return best is None or best.more


def is_yearly(value: Json) -> bool:
    """Whether a value is a date or may be a year."""
    return isinstance(value, str) or (isinstance(value, int) and 1000 <= value <= 2100)


def same_text(one: Json, other: Json) -> bool:
    """Whether two values are the same to people: case, accents, underscores and a last full stop aside."""
    left, right = (fold(str(each)).replace("_", " ").rstrip(".") for each in (one, other))
    return left == right


def as_number(text: str) -> int | float | None:
    """The number that a text is, if it is one."""
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None
