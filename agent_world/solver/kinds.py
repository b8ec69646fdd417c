"""The kinds of things that the tools of an environment tell about, told by the nouns in the tools' own names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from agent_world.solver.fields import Parameter
from agent_world.solver.index import IndexedTool, Toolbox
from agent_world.solver.lexicon import lexicon, similarity, split_words, stem
from agent_world.solver.mentions import Token
from agent_world.solver.terms import Noun

_JOINTS = frozenset("of by in for to from with on at per".split())
_NEAR = 0.8  # how near a word must be to a noun to be another word for it


@dataclass(slots=True, kw_only=True)
class Kind:
    """One kind of thing: the tools that list some, tell all about one, or find some by a part of their name."""

    noun: Noun
    lists: list[IndexedTool] = field(default_factory=list)
    records: list[tuple[IndexedTool, Parameter]] = field(default_factory=list)
    searches: list[tuple[IndexedTool, Parameter]] = field(default_factory=list)

    @property
    def tools(self) -> list[IndexedTool]:
        """All tools that tell about it."""
        return [*self.lists, *(tool for tool, _ in self.records), *(tool for tool, _ in self.searches)]


@dataclass(frozen=True, slots=True)
class Kinds:
    """All kinds by noun; `parts` are the words that tools call their inputs and results by."""

    known: dict[Noun, Kind]
    parts: frozenset[str]

    def spoken(self, tokens: Sequence[Token], at: int) -> tuple[Noun, int] | None:
        """The longest noun that begins at a token, and the token after it."""
        best: tuple[Noun, int] | None = None
        for noun in self.known:
            end = at + len(noun)
            if end <= len(tokens) and (best is None or end > best[1]) and _is_said(noun, tokens[at:end]):
                best = noun, end
        if best is None and tokens[at].kind == "word" and tokens[at].low not in self.parts | lexicon().verbs:
            near = [noun for noun in self.known if len(noun) == 1 and similarity(tokens[at].stem, noun[0]) >= _NEAR]
            best = (near[0], at + 1) if len(near) == 1 else None
        return best

    def called(self, words: Sequence[str]) -> Kind | None:
        """The kind that is called just so, or whose whole noun the words end in, or the only one whose noun ends so."""
        stems = tuple(map(stem, words))
        for start in range(len(stems)):
            if stems[start:] in self.known:
                return self.known[stems[start:]]
        longer = [kind for noun, kind in self.known.items() if len(stems) > 1 and noun[-len(stems) :] == stems]
        return longer[0] if len(longer) == 1 else None


_CACHE: WeakKeyDictionary[Toolbox, Kinds] = WeakKeyDictionary()


def kinds_of(box: Toolbox) -> Kinds:
    """The kinds of a toolbox; made once."""
    found = _CACHE.get(box)
    if found is None:
        found = _CACHE[box] = _built(box)
    return found


def _built(box: Toolbox) -> Kinds:
    known: dict[Noun, Kind] = {}
    for tool in box.reading():
        noun = _noun(tool)
        if not noun:
            continue
        kind = known.setdefault(noun, Kind(noun=noun))
        required = tool.required
        if tool.items and len(required) == 1 and required[0].role == "search":
            kind.searches.append((tool, required[0]))
        elif not tool.items and len(required) == 1:
            kind.records.append((tool, required[0]))
        else:
            kind.lists.append(tool)
    return Kinds(known, box.parts)


def _noun(tool: IndexedTool) -> Noun:
    """The words of a tool's name behind its verb; behind a joint when what stands before it is no thing: figures of."""
    words = split_words(tool.name)[1:]
    joint = next((at for at, word in enumerate(words) if word in _JOINTS), len(words))
    whole = split_words(tool.name)
    if not tool.items and not tool.required and "of" in whole:
        words, joint = whole[len(whole) - whole[::-1].index("of") :], len(whole)
    return tuple(map(stem, words[:joint]))


def _is_said(noun: Noun, tokens: Sequence[Token]) -> bool:
    return all(
        token.kind in ("word", "number") and (token.text == word or (token.kind == "word" and token.stem == word))
        for word, token in zip(noun, tokens, strict=True)
    )
