"""What a small policy may write: the calls that its tools take and the answer that is asked for, as an automaton.

Guided decoding, as inference servers offer it by JSON Schema, here over the compact notation: the policy chooses tools,
arguments and references, and is spared the spelling of tool names and keys. So its tool list is not in its prompt but
in its grammar. An automaton is made once for the tools of an environment, and one for each answer schema.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import numpy as np

from agent_world.environments.model import Json, PublicTool
from agent_world.models import references
from agent_world.models.compact import END_LIST, END_RECORD, LIST, MARKS, NEXT, RECORD, dump
from agent_world.models.references import COUNT, NUMBERS, TEXTS, References

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Fragment = Callable[[int], int]
"""Adds states behind a given one and returns the last of them."""

TEXT, NUMBER, PLAIN, DIGIT, LEADING = -1, -2, -3, -4, -5
"""Symbols beside single ids: a reference to a text or a number that was read, a piece of text, a digit, one but 0."""

_LONGEST_TEXT, _LONGEST_NUMBER = 24, 20
"""Ids of a text that is spelt, and digits before and behind the point of a number; the longer can be referred to."""

_FORBIDDEN = MARKS + references.MARKS
"""Characters that no text may hold, not even put together from bytes."""

_ANY = ("string", "number", "boolean", "null")


class Vocabulary:
    """The ids of a tokenizer by what a grammar asks of them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.size = tokenizer.get_vocab_size()
        self.first_text, self.first_number = tokenizer.token_to_id(TEXTS[0]), tokenizer.token_to_id(NUMBERS[0])

    def encode(self, text: str) -> list[int]:
        """The ids of a piece of the notation."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def mark(self, mark: str) -> int:
        """The id of a frame mark, as ``<c>``."""
        return self._tokenizer.token_to_id(mark)

    def kinds_of(self, id: int) -> tuple[int, ...]:
        """The classes that an id belongs to."""
        return self._kinds.get(id, ())

    @cached_property
    def _kinds(self) -> dict[int, tuple[int, ...]]:
        texts = range(self.first_text, self.first_text + COUNT)
        numbers = range(self.first_number, self.first_number + COUNT)
        members = {TEXT: texts, NUMBER: numbers, PLAIN: self.plain, DIGIT: self.digits, LEADING: self.digits[1:]}
        kinds: dict[int, tuple[int, ...]] = {}
        for kind, ids in members.items():
            for id in ids:
                kinds[id] = (*kinds.get(id, ()), kind)
        return kinds

    @cached_property
    def plain(self) -> list[int]:
        """Ids that stand for text without any mark, and with which none can begin: an id may be part of a character."""
        from tokenizers.pre_tokenizers import ByteLevel

        spell = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str
        spellings = [spell(mark)[0][0] for mark in _FORBIDDEN]  # one letter a byte, as the tokenizer writes it
        begun = tuple({spelling[:end] for spelling in spellings for end in range(1, len(spelling))})
        special = self._tokenizer.get_added_tokens_decoder()
        return [
            id
            for id in range(self.size)
            if id not in special
            and not set(self._tokenizer.decode([id])) & set(f'="{_FORBIDDEN}')
            and not self._tokenizer.id_to_token(id).endswith(begun)
        ]

    @cached_property
    def digits(self) -> list[int]:
        """The ids of 0 to 9."""
        return [id for text in "0123456789" for id in self.encode(text)]


class Automaton:
    """A nondeterministic automaton over ids; state 0 is the first, and nothing follows a step's stop."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._edges: list[list[tuple[int, int]]] = [[]]  # symbol and next state
        self._jumps: list[list[int]] = [[]]
        self._masks: dict[frozenset[int], _Mask] = {}
        self._steps: dict[tuple[frozenset[int], int], frozenset[int]] = {}

    def state(self, *, after: int | None = None, symbol: int | None = None) -> int:
        """A new state, reached from `after` by `symbol`, or without reading when there is none."""
        self._edges.append([])
        self._jumps.append([])
        new = len(self._edges) - 1
        if after is not None:
            self.join(after, new, symbol)
        return new

    def join(self, one: int, other: int, symbol: int | None = None) -> None:
        """A way from `one` to `other`."""
        if symbol is None:
            self._jumps[one].append(other)
        else:
            self._edges[one].append((symbol, other))

    def literal(self, text: str | Sequence[int]) -> Fragment:
        """Exactly this text."""
        ids = self.vocabulary.encode(text) if isinstance(text, str) else text

        def add(at: int) -> int:
            for id in ids:
                at = self.state(after=at, symbol=id)
            return at

        return add

    def symbol(self, symbol: int) -> Fragment:
        """One id of a class."""
        return lambda at: self.state(after=at, symbol=symbol)

    def repeated(self, symbol: int, *, least: int, most: int) -> Fragment:
        """Ids of a class, from `least` to `most` of them."""

        def add(at: int) -> int:
            end = self.state()
            for count in range(most):
                if count >= least:
                    self.join(at, end)
                at = self.state(after=at, symbol=symbol)
            self.join(at, end)
            return end

        return add

    def chain(self, *parts: Fragment) -> Fragment:
        """One part after the other."""

        def add(at: int) -> int:
            for part in parts:
                at = part(at)
            return at

        return add

    def either(self, parts: Iterable[Fragment]) -> Fragment:
        """One of the parts."""

        def add(at: int) -> int:
            end = self.state()
            for part in parts:
                self.join(part(at), end)
            return end

        return add

    def maybe(self, part: Fragment) -> Fragment:
        """The part or nothing."""
        return self.either([part, lambda at: at])

    def listed(self, item: Fragment) -> Fragment:
        """Items between the marks of a list."""

        def add(at: int) -> int:
            opened = self.literal(LIST)(at)
            before = self.state(after=opened)
            behind = item(before)
            self.join(self.literal(NEXT)(behind), before)
            end = self.state(after=opened)
            self.join(behind, end)
            return self.literal(END_LIST)(end)

        return add

    def closure(self, states: Iterable[int]) -> frozenset[int]:
        """`states` and all that are reached from them without reading."""
        found = set(states)
        open_ = list(found)
        while open_:
            for other in self._jumps[open_.pop()]:
                if other not in found:
                    found.add(other)
                    open_.append(other)
        return frozenset(found)

    def step(self, states: frozenset[int], id: int) -> frozenset[int]:
        """Where reading `id` leads; kept, since episodes of an environment go the same ways again and again."""
        if (states, id) not in self._steps:
            kinds = self.vocabulary.kinds_of(id)
            self._steps[states, id] = self.closure(
                to for state in states for symbol, to in self._edges[state] if symbol == id or symbol in kinds
            )
        return self._steps[states, id]

    def mask(self, states: frozenset[int]) -> _Mask:
        """The ids that may be read next."""
        if states not in self._masks:
            symbols = {symbol for state in states for symbol, _ in self._edges[state]}
            allowed = np.zeros(self.vocabulary.size, dtype=bool)
            allowed[[symbol for symbol in symbols if symbol >= 0]] = True
            if PLAIN in symbols:
                allowed[self.vocabulary.plain] = True
            if DIGIT in symbols:
                allowed[self.vocabulary.digits] = True
            if LEADING in symbols:
                allowed[self.vocabulary.digits[1:]] = True
            texts, numbers = TEXT in symbols, NUMBER in symbols
            alone = not texts and not numbers and np.count_nonzero(allowed) == 1
            self._masks[states] = _Mask(allowed, texts, numbers, int(allowed.argmax()) if alone else None)
        return self._masks[states]


class _Mask(NamedTuple):
    allowed: np.ndarray  # bool [vocabulary], without references
    texts: bool
    numbers: bool
    only: int | None  # the id, when there is no other and no reference


class Guide:
    """One step being written: which ids may come next. Where nothing may, anything is let through: it is malformed."""

    def __init__(self, automata: Sequence[Automaton], references: References) -> None:
        self._vocabulary, self._references = automata[0].vocabulary, references
        self._live = [(automaton, automaton.closure([0])) for automaton in automata]

    def allowed(self) -> np.ndarray:
        """Bool [vocabulary]: the ids that may come next."""
        vocabulary = self._vocabulary
        allowed = np.zeros(vocabulary.size, dtype=bool)
        for automaton, states in self._live:
            mask = automaton.mask(states)
            allowed |= mask.allowed
            if mask.texts:
                allowed[vocabulary.first_text : vocabulary.first_text + self._references.texts] = True
            if mask.numbers:
                allowed[vocabulary.first_number : vocabulary.first_number + self._references.numbers] = True
        return allowed if allowed.any() else ~allowed

    def only(self) -> int | None:
        """The one id that may come next, where it takes no look at what was read to know; None otherwise."""
        if len(self._live) != 1:
            return None
        ((automaton, states),) = self._live
        return automaton.mask(states).only

    def advance(self, id: int) -> None:
        """Take note that `id` was written."""
        self._live = [(automaton, states) for automaton, old in self._live if (states := automaton.step(old, id))]


def tools_automaton(vocabulary: Vocabulary, tools: Sequence[PublicTool]) -> Automaton:
    """Every call that the schemas of `tools` allow, and replies in free text."""
    automaton = Automaton(vocabulary)
    say = _Values(automaton)
    call, stop = vocabulary.mark("<c>"), vocabulary.mark("<o>")
    opened = automaton.state(after=0, symbol=call)
    for tool in tools:
        ended = automaton.chain(automaton.literal(quote(tool.name, safe="")), say.fields(tool.input_schema))(opened)
        automaton.state(after=ended, symbol=stop)
    reply = automaton.state(after=0, symbol=vocabulary.mark("<r>"))
    automaton.state(
        after=automaton.chain(automaton.literal('"'), automaton.repeated(PLAIN, least=1, most=_LONGEST_TEXT))(reply),
        symbol=stop,
    )
    return automaton


def answer_automaton(vocabulary: Vocabulary, schema: Mapping[str, Json]) -> Automaton:
    """Every answer of this schema, all of its fields in order."""
    automaton = Automaton(vocabulary)
    opened = automaton.state(after=0, symbol=vocabulary.mark("<a>"))
    every = {**schema, "required": list(schema.get("properties", {}))}
    ended = _Values(automaton).fields(every)(opened)
    automaton.state(after=ended, symbol=vocabulary.mark("<e>"))
    return automaton


class _Values:
    """Fragments for values by their JSON Schema."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton

    def fields(self, schema: Mapping[str, Json], *, least: int = 0) -> Fragment:
        """The properties of an object in order of their names, those that are not required only where wanted.

        At least one of them with `least` 1.
        """
        names, required = sorted(schema.get("properties", {})), set(schema.get("required", []))
        if not least or required & set(names):
            return self._chain(schema, names, required)
        parts = (self._chain(schema, names[place:], {name}) for place, name in enumerate(names))
        return self._automaton.either(parts)

    def _chain(self, schema: Mapping[str, Json], names: Sequence[str], required: Container[str]) -> Fragment:
        parts = []
        for name in names:
            field = self._automaton.either(self._forms(schema["properties"][name], f" {quote(name, safe='')}="))
            parts.append(field if name in required else self._automaton.maybe(field))
        return self._automaton.chain(*parts)

    def _forms(self, schema: Mapping[str, Json], key: str = "", *, listed: bool = False) -> list[Fragment]:
        """The ways to write a value behind `key`, whose last mark may be one piece with the key, or in a list."""
        automaton, literal = self._automaton, self._automaton.literal
        if "enum" in schema:
            spelt = [literal(key + dump(value)) for value in schema["enum"]]
            symbols = sorted({symbol for value in schema["enum"] for symbol in _referring(value)})
            return [*spelt, *(automaton.chain(literal(key), automaton.symbol(symbol)) for symbol in symbols)]
        kinds = schema.get("type", _ANY)
        return [
            form
            for kind in ([kinds] if isinstance(kinds, str) else kinds)
            for form in (self._items(schema) if listed and kind == "object" else self._typed(kind, schema, key))
        ]

    def _items(self, schema: Mapping[str, Json]) -> list[Fragment]:
        """The ways to write a record in a list: without its marks unless it is empty."""
        empty = [] if schema.get("required") else [self._automaton.literal(RECORD + END_RECORD)]
        return [self.fields(schema, least=1), *empty] if schema.get("properties") else empty

    def _typed(self, kind: str, schema: Mapping[str, Json], key: str) -> list[Fragment]:
        automaton, literal = self._automaton, self._automaton.literal
        match kind:
            case "string":
                spelt = automaton.chain(literal(key + '"'), automaton.repeated(PLAIN, least=0, most=_LONGEST_TEXT))
                return [spelt, automaton.chain(literal(key), automaton.symbol(TEXT))]
            case "integer" | "number":
                number = automaton.either([self._number(whole=kind == "integer"), automaton.symbol(NUMBER)])
                return [automaton.chain(literal(key), number)]
            case "boolean":
                return [literal(key + "true"), literal(key + "false")]
            case "array":
                item = automaton.either(self._forms(schema.get("items", {}), listed=True))
                return [automaton.chain(literal(key), automaton.listed(item))]
            case "object":
                return [automaton.chain(literal(key + RECORD), self.fields(schema), literal(END_RECORD))]
        return [literal(key + "null")]

    def _number(self, *, whole: bool) -> Fragment:
        """A number as JSON has it, without an exponent."""
        automaton, digits = self._automaton, self._automaton.repeated
        rest = digits(DIGIT, least=0, most=_LONGEST_NUMBER - 1)
        start = automaton.either([automaton.literal("0"), automaton.chain(automaton.symbol(LEADING), rest)])
        signed = automaton.chain(automaton.maybe(automaton.literal("-")), start)
        if whole:
            return signed
        fraction = automaton.chain(automaton.literal("."), digits(DIGIT, least=1, most=_LONGEST_NUMBER))
        return automaton.chain(signed, automaton.maybe(fraction))


def _referring(value: Json) -> tuple[int, ...]:
    """The class of references that may stand for a value."""
    if isinstance(value, str):
        return (TEXT,)
    return (NUMBER,) if isinstance(value, (int, float)) and not isinstance(value, bool) else ()
