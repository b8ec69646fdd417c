"""What a solver knows of an environment's tools before it calls any: their words, and the links between them.

Everything comes from the public face of the tools. An index is built once for a set of tools and shared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_world.environments.model import Json, PublicTool
from agent_world.identity import canonical_json
from agent_world.solver.fields import Bag, Field, Parameter, bag_of, merge, read_field, read_parameter
from agent_world.solver.lexicon import similarity, split_words, stem
from agent_world.solver.mentions import Token

_IDENTIFYING = frozenset(map(stem, ("id", "code", "identifier")))
_NAMES = frozenset(map(stem, ("name", "title", "label")))
_GENERIC = frozenset(
    map(stem, ("name", "id", "number", "code", "value", "identifier", "title", "label", "text", "key"))
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexedTool:
    """A tool as the solver sees it. `verb` are words of doing, `nouns` what it is about, `becomes` states it leads to.

    `aliases` are other ways to say what it does that its description lists, each as the stems of one phrase.
    """

    name: str
    writes: bool
    parameters: tuple[Parameter, ...]
    fields: tuple[Field, ...]
    items: str | None
    pages: bool
    verb: Bag
    nouns: Bag
    words: Bag
    becomes: frozenset[str]
    aliases: tuple[frozenset[str], ...]
    description: str

    def parameter(self, name: str) -> Parameter | None:
        """The parameter called `name`, if there is one."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def result_field(self, name: str) -> Field | None:
        """The result field called `name`, if there is one."""
        return next((one for one in self.fields if one.name == name), None)

    @property
    def required(self) -> tuple[Parameter, ...]:
        """The parameters without which it cannot be called."""
        return tuple(parameter for parameter in self.parameters if parameter.required)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Link:
    """`field` of a result of `tool` can be given to a parameter; `strength` from 0 to 1."""

    tool: IndexedTool
    field: Field
    strength: float


@dataclass(slots=True, eq=False, weakref_slot=True)
class Toolbox:
    """All tools of an environment, with the links between them."""

    tools: tuple[IndexedTool, ...]
    links: dict[tuple[str, str], tuple[Link, ...]] = field(default_factory=dict)
    details: dict[str, tuple[tuple[IndexedTool, Parameter, Field], ...]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    values: dict[str, tuple[tuple[tuple[str, ...], Json], ...]] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    titles: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    _weight: dict[str, float] = field(default_factory=dict)
    _near: dict[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)

    def near(self, word: str) -> tuple[tuple[str, float], ...]:
        """The stems of these tools' texts that are near `word`, with their similarity."""
        found = self._near.get(word)
        if found is None:
            pairs = ((known, similarity(word, known)) for known in self.weights)
            found = tuple((known, score) for known, score in pairs if score > 0.3)
            self._near[word] = found
        return found

    def weight(self, word: str) -> float:
        """How telling a word is here: low when most tools use it or it says little anywhere."""
        found = self._weight.get(word)
        if found is None:
            found = (
                0.25
                if word in _GENERIC
                else max((self.weights[known] * score for known, score in self.near(word)), default=0.6)
            )
            self._weight[word] = found
        return found

    def closest(self, word: str, bag: Bag) -> float:
        """How well the best word of `bag` stands for `word`."""
        return max((score * bag[known] for known, score in self.near(word) if known in bag), default=0.0)

    def match(self, query: Bag, bag: Bag) -> float:
        """The share of the weight of `query` that `bag` covers, from 0 to 1; 0 for an empty query."""
        total = covered = 0.0
        for word, weight in query.items():
            telling = weight * self.weight(word)
            total += telling
            covered += telling * self.closest(word, bag)
        return covered / total if total else 0.0

    def touch(self, query: Bag, bag: Bag) -> float:
        """How well the best word of `query` is met by `bag`, from 0 to 1."""
        return max(
            (weight * self.closest(word, bag) * min(1.0, 0.35 + self.weight(word)) for word, weight in query.items()),
            default=0.0,
        )

    def spoken_values(self, tokens: Sequence[Token]) -> Iterator[tuple[int, int, Json]]:
        """Where allowed values of parameters are spoken of: first token, end, and the value."""
        for at, token in enumerate(tokens):
            for words, value in self.values.get(token.stem[:4], ()) if token.kind in ("word", "name") else ():
                end = at + len(words)
                if end <= len(tokens) and all(
                    _spoken(word, spoken) for word, spoken in zip(words, tokens[at:end], strict=True)
                ):
                    yield at, end, value
                    break

    def explains(self, token: Token) -> bool:
        """Whether the tools speak of a word, in whatever form."""
        return bool(self.near(token.stem)) or token.low in self.parts

    def names_field(self, word: str) -> bool:
        """Whether some tool tells a value called so, paging aside."""
        return word in self.named

    @property
    def doing(self) -> frozenset[str]:
        """The stems of the verbs that writing tools are named by."""
        return frozenset(word for tool in self.writing() for word, weight in tool.verb.items() if weight == 1.0)

    def tool(self, name: str) -> IndexedTool | None:
        """The tool called `name`, if there is one."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def reading(self) -> list[IndexedTool]:
        """The tools that change nothing."""
        return [tool for tool in self.tools if not tool.writes]

    def writing(self) -> list[IndexedTool]:
        """The tools that change something."""
        return [tool for tool in self.tools if tool.writes]


_CACHE: dict[str, Toolbox] = {}
_BY_IDENTITY: dict[tuple[int, ...], tuple[Sequence[PublicTool], Toolbox]] = {}
_KEPT = 256


def toolbox_of(tools: Sequence[PublicTool]) -> Toolbox:
    """The index of these tools; kept, so that a second episode of an environment pays nothing."""
    # Each session wraps the schemas anew, which are the same objects; whoever is kept keeps them from being reused.
    parts = tuple(id(part) for tool in tools for part in (tool.description, tool.input_schema, tool.output_schema))
    known = _BY_IDENTITY.get(parts)
    if known is not None:
        return known[1]
    key = canonical_json([[tool.name, tool.description, tool.input_schema, tool.output_schema] for tool in tools])
    if key not in _CACHE:
        if len(_CACHE) >= _KEPT:
            _CACHE.clear()
        _CACHE[key] = _build(tools)
    if len(_BY_IDENTITY) >= _KEPT:
        _BY_IDENTITY.clear()
    _BY_IDENTITY[parts] = (tools, _CACHE[key])
    return _CACHE[key]


def _spoken(word: str, token: Token) -> bool:
    """A short value must be written as it is; a longer one may be inflected."""
    if len(word) <= 3:
        return token.text == word or (word.islower() and len(word) == 3 and token.low == f"{word}s")
    low = word.lower()
    if token.low == low:
        return True
    return not low.endswith(("ed", "ing")) and token.stem == stem(low) and token.low[:4] == low[:4]


def _build(tools: Sequence[PublicTool]) -> Toolbox:
    indexed = _with_keys([_tool(tool) for tool in tools])
    counts: dict[str, int] = {}
    for tool in indexed:
        texts = [tool.words, *(one.words for one in tool.parameters), *(one.words for one in tool.fields)]
        for word in merge(*texts):
            counts[word] = counts.get(word, 0) + 1
    top = math.log(1 + len(indexed))
    weights = {
        word: 0.25 if word in _GENERIC else max(0.3, math.log(1 + len(indexed) / count) / top)
        for word, count in counts.items()
    }
    box = Toolbox(indexed, weights=weights)
    for tool in indexed:
        for parameter in tool.parameters:
            if parameter.role in ("id", "text", "search") and not parameter.enum:
                links = _links(box, tool, parameter)
                if links:
                    box.links[tool.name, parameter.name] = links
    for tool in indexed:
        box.details[tool.name] = tuple(_details(box, tool))
    for tool in indexed:
        for one in tool.fields:
            allowed = {
                value
                for other in indexed
                for parameter in other.parameters
                if parameter.name == one.name and parameter.role == "enum"
                for value in parameter.enum
            }
            keyed = bool(_IDENTIFYING & set(one.names)) or any(
                parameter.role == "id" and parameter.name == one.name and _alike(one.words, parameter.words)
                for other in indexed
                for parameter in other.parameters
            )
            object.__setattr__(one, "enum", tuple(sorted(allowed, key=str)))
            object.__setattr__(one, "key", keyed)
    box.titles = frozenset(
        word for tool in indexed for word in re.findall(r"(?<=\w )[A-Z]\w*", tool.description.partition(". ")[0])
    )
    box.named = frozenset(stem(one.name) for tool in indexed for one in tool.fields if one.item or not tool.items)
    box.parts = frozenset(
        word for tool in indexed for one in (*tool.fields, *tool.parameters) for word in split_words(one.name)
    )
    values: dict[str, dict[tuple[str, ...], Json]] = {}
    for tool in indexed:
        for parameter in tool.parameters:
            examples = [value for value in parameter.examples.values() if not value.isdigit()]
            for value in parameter.enum if parameter.role == "enum" else examples:
                words = tuple(re.split(r"[\s_-]+", str(value)))
                first = words[0] if len(words[0]) <= 3 else words[0].lower()
                values.setdefault(stem(first.lower())[:4], {})[words] = value
    box.values = {key: tuple(sorted(found.items(), key=lambda pair: -len(pair[0]))) for key, found in values.items()}
    return box


def _with_keys(tools: Sequence[IndexedTool]) -> tuple[IndexedTool, ...]:
    """Gives the role of an id to parameters that are what another tool names its rows by."""
    keys = [(one.name, frozenset(one.words), tool.name) for tool in tools if not tool.writes for one in tool.fields[:1]]
    result = []
    for tool in tools:
        parameters = []
        for parameter in tool.parameters:
            words = frozenset(parameter.words)
            known = any(
                name == parameter.name and other != tool.name and _alike(words, told) for name, told, other in keys
            )
            keyed = known and parameter.required and parameter.role in ("text", "number", "date") and not parameter.enum
            parameters.append(replace(parameter, role="id") if keyed else parameter)
        result.append(replace(tool, parameters=tuple(parameters)))
    return tuple(result)


def _alike(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether two texts say nearly the same; a name and what it names are not the same."""
    left, right = set(one), set(other)
    return len(left ^ right) <= 1 and not _NAMES & (left ^ right)


def _tool(tool: PublicTool) -> IndexedTool:
    names = split_words(tool.name)
    result = tool.output_schema.get("properties", {}) if isinstance(tool.output_schema, Mapping) else {}
    items, fields = None, []
    for name, schema in result.items():
        inner = schema.get("items") if isinstance(schema, Mapping) else None
        if isinstance(inner, Mapping) and "properties" in inner and items is None:
            items = name
            fields += [read_field(key, value, True, tool.description) for key, value in inner["properties"].items()]
    for name, schema in result.items():
        if name not in (items, "page", "pages"):
            fields.append(read_field(name, schema, False, tool.description))
    schemas = {**result, **(result[items]["items"]["properties"] if items is not None else {})}
    told = re.search(r"\b(?:returns?|gives?)\b(.*)", tool.description, re.IGNORECASE)
    if told and [one.name for one in fields] == sorted(one.name for one in fields):
        # The order of the alphabet says nothing; a description names first what rows are known by.
        fields.sort(key=lambda one: _place_in(told.group(1), one.name, schemas[one.name]))
    properties = tool.input_schema.get("properties", {})
    required = set(tool.input_schema.get("required", ()))
    parameters = tuple(read_parameter(name, schema, name in required) for name, schema in properties.items())
    first = re.split(r"(?<=[a-z)])\.\s", tool.description)[0]
    becomes = re.findall(r"\bbecomes? (?:an? |the )?([A-Za-z_ ]+?)(?=[.,;]|$| when| if| and| or)", tool.description)
    states = {stem(word) for text in becomes for word in split_words(text)}
    states |= {stem(word) for word in split_words(" ".join(re.findall(r"\b[A-Z]{3,}\b", tool.description)))}
    lead = split_words(tool.description)[:1]
    return IndexedTool(
        name=tool.name,
        writes=tool.writes,
        parameters=parameters,
        fields=tuple(fields),
        items=items,
        pages=items is not None and any(parameter.role == "page" for parameter in parameters),
        verb={**{stem(word): 0.85 for word in lead}, stem(names[0]): 1.0},
        nouns=merge(bag_of(" ".join(names[1:])), bag_of(first, 0.7)),
        words=merge(bag_of(tool.name), bag_of(tool.description, 0.8)),
        becomes=frozenset(states),
        aliases=_aliases(tool.description),
        description=tool.description,
    )


def _place_in(description: str, name: str, schema: Json) -> int:
    """Where a description tells of a value."""
    told = str(schema.get("description") or name) if isinstance(schema, Mapping) else name
    places = [description.rfind(f" {text}") for text in (told, name.replace("_", " "), name)]
    return next((place for place in places if place >= 0), len(description))


def _aliases(description: str) -> tuple[frozenset[str], ...]:
    """The phrases of a list of synonyms at the end of a description."""
    found = re.search(r"\b(?:words|synonyms|aliases|also called|also known as|aka)\b[^:.]*:\s*(.+?)\.?$", description)
    phrases = found.group(1).split(",") if found else []
    return tuple(frozenset(map(stem, split_words(phrase))) for phrase in phrases if phrase.strip())


def _links(box: Toolbox, tool: IndexedTool, parameter: Parameter) -> tuple[Link, ...]:
    """Results of other tools that can be given to `parameter`, best first."""
    found = []
    for source in box.tools:
        if source is tool:
            continue
        for given in source.fields:
            echo = source.parameter(given.name)
            if echo is not None and echo.required:
                continue
            if given.numeric != parameter.numeric and given.types and parameter.types:
                continue
            strength = _strength(box, source, given, tool, parameter)
            if strength >= 0.55:
                home = parameter.role != "id" or _at_home(source, given)
                found.append(Link(tool=source, field=given, strength=strength if home else 0.7 * strength))
    return tuple(sorted(found, key=lambda link: -link.strength)[:12])


def _strength(box: Toolbox, source: IndexedTool, given: Field, tool: IndexedTool, parameter: Parameter) -> float:
    same = given.name == parameter.name
    if same and _NAMES & (set(given.words) ^ set(parameter.words)):
        return 0.5
    if same and not set(split_words(given.name)) <= {"id", "name", "code", "title", "number", "key", "label"}:
        return 1.0
    if parameter.role == "search":
        told = dict.fromkeys((*parameter.words, *tool.nouns), 1.0)
        wanted, known = dict.fromkeys(parameter.words, 1.0), dict.fromkeys(given.words, 1.0)
        return 0.65 if min(box.match(known, told), box.match(wanted, known)) > 0.75 else 0.0
    identifying = parameter.role == "id" or bool(_IDENTIFYING & set(parameter.words))
    told = bool(_IDENTIFYING & set(given.words))
    if identifying != told:
        return 0.0
    mine, theirs = dict.fromkeys(parameter.words, 1.0), dict.fromkeys(given.words, 1.0)
    if not identifying:
        return 0.7 * box.match(theirs, mine) if same else 0.0
    here = merge(mine, dict.fromkeys(tool.nouns, 0.5))
    there = merge(theirs, dict.fromkeys(source.nouns, 0.3))
    return 0.55 * box.match(theirs, here) + 0.45 * box.match(mine, there)


def _at_home(source: IndexedTool, given: Field) -> bool:
    """Whether a tool is about the thing that an id names, and does not just refer to it."""
    own = set(given.names) - _IDENTIFYING
    return not own or bool(own & {word for word, weight in source.nouns.items() if weight == 1.0})


def _details(box: Toolbox, tool: IndexedTool):
    """Tools that tell more about a result of `tool`: (tool, parameter, field of the result)."""
    for other in box.tools:
        if other is tool or other.writes or len(other.required) > 1:
            continue
        for parameter in other.required or other.parameters:
            for link in box.links.get((other.name, parameter.name), ()):
                if link.tool is tool and (link.field.item or not tool.items):
                    yield other, parameter, link.field
