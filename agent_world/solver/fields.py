"""Parameters and result fields of tools as the solver sees them: words, roles, examples, meanings of values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent_world.environments.model import Json
from agent_world.solver.lexicon import fold, lexicon, split_words, stem

Bag = Mapping[str, float]
"""Stems with weights."""

Role = Literal["page", "size", "order", "id", "low", "high", "number", "flag", "enum", "search", "date", "text"]

_PAGE = {"page", "page_number", "offset"}
_SIZE = {"limit", "page_size", "per_page", "size_of_page", "max_results"}
_LOW = frozenset(("min minimum least from after since above over lowest earliest start longer more").split())
_HIGH = {"max", "maximum", "most", "until", "before", "to", "below", "under", "highest", "latest", "end", "up", "less"}
_SEARCH = frozenset(("query text search q keyword keywords contains name title label term pattern").split())
_IDENTIFIER = re.compile(r"\b(id|identifier|ids)\b")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameter:
    """One parameter of a tool."""

    name: str
    types: frozenset[str]
    required: bool
    enum: tuple[Json, ...]
    role: Role
    names: Bag
    words: Bag
    strict: bool = False
    meanings: Mapping[str, Bag] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)

    @property
    def numeric(self) -> bool:
        """Whether it takes numbers only."""
        return bool(self.types & {"integer", "number"}) and "string" not in self.types


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    """One value in a tool's result: `name` in the record, `item` when the record is one of a list.

    `counts` is set for a number of things, `key` for what rows are named by, `enum` when its values are known.
    """

    name: str
    types: frozenset[str]
    item: bool
    names: Bag
    words: Bag
    counts: bool = False
    key: bool = False
    enum: tuple[Json, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return bool(self.types & {"integer", "number"})


def bag_of(text: str, weight: float = 1.0) -> dict[str, float]:
    """The content words of a text."""
    stop = lexicon().stop
    return {stem(word): weight for word in split_words(text) if word not in stop}


def merge(*bags: Bag) -> dict[str, float]:
    """All words of the bags, each with its largest weight."""
    result: dict[str, float] = {}
    for bag in bags:
        for word, weight in bag.items():
            result[word] = max(weight, result.get(word, 0.0))
    return result


def read_field(name: str, schema: Mapping, item: bool, description: str) -> Field:
    """The field `name` of a result, told of in the tool's `description` and its own `schema`."""
    names = bag_of(name)
    counted = any(
        re.search(rf"\b(how many|numbers? of|count of) (\w+ )?{re.escape(word)}", description.lower())
        for word in split_words(name)
    )
    told = bag_of(str(schema.get("description", "")), 0.9)
    counts = counted or bool(
        re.match(r"(how many|number of|count of) (?!the |an? |one )", str(schema.get("description", "")).lower())
    )
    if counts:
        told = merge(told, {stem("number"): 0.9})
    return Field(name=name, types=_types(schema), item=item, names=names, words=merge(names, told), counts=counts)


def read_parameter(name: str, schema: Mapping, required: bool) -> Parameter:
    """The parameter `name` as its `schema` tells it."""
    description = str(schema.get("description", ""))
    examples = _examples(description)
    if examples:
        description = description[: description.lower().find(next(iter(examples)))]
    enum = tuple(value for value in schema.get("enum", ()) if value is not None)
    names = bag_of(name)
    return Parameter(
        name=name,
        types=_types(schema),
        required=required,
        enum=enum,
        role=_role(name, schema, description),
        names=names,
        words=merge(names, bag_of(description, 0.8)),
        examples=examples,
        meanings=_meanings(enum, description),
        strict=bool(
            re.search(r"\b(more|greater|less|fewer|above|over|below|under|after|before)\b", description.lower())
        ),
    )


def _meanings(enum: Sequence[Json], description: str) -> dict[str, Bag]:
    """What each allowed value stands for: its own words and those of an explanation "value: ..."."""
    meanings = {}
    for value in enum:
        told = re.search(rf"(?<!\w){re.escape(str(value))}\s*[:=]\s*([^,;)]+)", description)
        meanings[str(value)] = merge(bag_of(str(value)), bag_of(told.group(1), 0.9) if told else {})
    return meanings


def _examples(description: str) -> dict[str, str]:
    """Values that a description gives as examples, by their folded text."""
    found = re.search(r"\b(?:such as|for example|e\.g\.|like) (.+?)(?:[.;)]?$|\. )", description)
    return {fold(one.strip()): one.strip() for one in re.split(r", | or ", found.group(1))} if found else {}


def _role(name: str, schema: Mapping, description: str) -> Role:
    words = set(split_words(name))
    text = description.lower()
    numeric = bool(_types(schema) & {"integer", "number"})
    dated = schema.get("format") == "date" or "yyyy" in text
    if name in _PAGE:
        return "page"
    if name in _SIZE:
        return "size"
    if words & {"sort", "order", "sorting", "descending", "ascending", "direction"} and (
        "enum" in schema or "boolean" in _types(schema)
    ):
        return "order"
    if "boolean" in _types(schema):
        return "flag"
    if "enum" in schema:
        return "enum"
    if name == "id" or name.endswith("_id") or _IDENTIFIER.search(text):
        return "id"
    if numeric or dated:
        told = words | set(re.findall(r"[a-z]+", text))
        low, high = words & _LOW, words & _HIGH
        if not low and not high:
            low, high = told & (_LOW - {"from", "more", "start"}), told & (_HIGH - {"to", "end", "up", "less"})
        if bool(low) != bool(high):
            return "low" if low else "high"
        return "number" if numeric else "date"
    if name in _SEARCH or re.search(r"\b(part of|contain|words? (in|of)|starts? with|search)", text):
        return "search"
    return "date" if words & {"date", "day"} else "text"


def _types(schema: Json) -> frozenset[str]:
    if not isinstance(schema, Mapping):
        return frozenset()
    kinds = schema.get("type", ())
    return frozenset([kinds] if isinstance(kinds, str) else kinds)
