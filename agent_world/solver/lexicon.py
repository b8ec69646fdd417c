"""General English: stems, words that may stand for each other, adjectives and what they measure.

The tables are in lexicon.txt; nothing in them belongs to one environment.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

_COMMON = 5000
_DERIVED = (
    ("ational", 4),
    ("ation", 3),
    ("ator", 3),
    ("ment", 3),
    ("ance", 4),
    ("ence", 4),
    ("ure", 5),
    ("al", 5),
    ("ate", 3),
    ("ness", 3),
    ("ly", 3),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Degree:
    """What a graded adjective measures: `more` says whether its top is the largest value; `of` are stems."""

    more: bool
    of: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The tables of lexicon.txt, keyed by stem where words are looked up."""

    sets: Mapping[str, frozenset[int]]
    degrees: Mapping[str, tuple[Degree, ...]]
    comparatives: Mapping[str, str]
    superlatives: Mapping[str, str]
    stop: frozenset[str]
    verbs: frozenset[str]
    openings: frozenset[str]
    phrases: Mapping[tuple[str, ...], tuple[str, ...]]
    before: Mapping[str, tuple[str, ...]]


def fold(text: str) -> str:
    """`text` without accents and case."""
    if text.isascii():
        return text.casefold()
    kept = unicodedata.normalize("NFKD", text)
    return "".join(character for character in kept if not unicodedata.combining(character)).casefold()


def split_words(text: str) -> list[str]:
    """The words of a text or of an identifier in snake or camel case, folded."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text) if re.fullmatch(r"\w+", text) else text
    return re.findall(r"[a-z]+|\d+", fold(spaced).replace("'s ", " "))


@cache
def stem(word: str) -> str:
    """The stem of one folded word; equal for its inflections, not meant for people."""
    base = _irregular().get(word, word)
    if len(base) > 3 and base.endswith("s") and not base.endswith(("ss", "us", "is")):
        if base.endswith("ies") and len(base) > 4:
            base = base[:-3] + "y"
        elif base.endswith(("xes", "ches", "shes", "sses", "zzes")):
            base = base[:-2]
        else:
            base = base[:-1]
        base = _irregular().get(base, base)
    for suffix in ("ing", "ed"):
        if base.endswith(suffix) and len(base) - len(suffix) >= 3 and re.search("[aeiouy]", base[: -len(suffix)]):
            base = base[: -len(suffix)]
            break
    for suffix, shortest in _DERIVED:
        if base.endswith(suffix) and len(base) - len(suffix) >= shortest:
            base = base[: -len(suffix)]
            break
    else:
        if base.endswith(("tion", "sion")) and len(base) > 6:
            base = base[:-3]
    if base.endswith("e") and len(base) > 3:
        base = base[:-1]
    if len(base) > 3 and base[-1] == base[-2] and base.isalpha() and base[-1] not in "aeiou":
        base = base[:-1]
    return base[:-1] + "i" if base.endswith("y") and len(base) > 3 else base


@cache
def similarity(one: str, other: str) -> float:
    """How near two stems are in meaning or in form, from 0 to 1."""
    if one == other:
        return 1.0
    sets = lexicon().sets
    if sets.get(one, frozenset()) & sets.get(other, frozenset()):
        return 0.8
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        shared += 1
    longest = max(len(one), len(other))
    if _abbreviates(one, other) or _abbreviates(other, one):
        return 0.7
    if shared >= 4 and shared / longest >= 0.62:
        return 0.75 * shared / longest
    if longest < 6:
        return 0.0
    if min(len(one), len(other)) >= 4 and (one.endswith(other) or other.endswith(one)):
        return 0.7
    left, right = _trigrams(one), _trigrams(other)
    dice = 2 * len(left & right) / (len(left) + len(right))
    return 0.7 * dice if dice >= 0.6 else 0.0


def is_common(word: str) -> bool:
    """Whether a folded word, or what it is inflected from, is among the commonest English words."""
    ranks = _ranks()
    forms = (word, word[:-1], word[:-2], word[:-3] + "y")
    return any(ranks.get(form, _COMMON) < _COMMON for form in forms)


@cache
def _ranks() -> Mapping[str, int]:
    """The common words of the word-splitter's list, which is in order of frequency."""
    import wordninja

    costs = wordninja.DEFAULT_LANGUAGE_MODEL._wordcost
    return {word: rank for rank, word in enumerate(sorted(costs, key=costs.__getitem__)[:_COMMON])}


def _abbreviates(short: str, word: str) -> bool:
    """Whether `short` is no word of its own but the beginning of `word`, or its consonants ("displ", "hwy")."""
    if not 3 <= len(short) < len(word) or len(word) < 5 or short[0] != word[0] or short in lexicon().sets:
        return False
    if word.startswith(short):
        return len(word) >= 6
    letters = iter(word)
    return not set(short) & set("aeiou") and all(letter in letters for letter in short)


@cache
def lexicon() -> Lexicon:
    """The lexicon, read once."""
    sets: dict[str, set[int]] = {}
    for number, line in enumerate(_section("same")):
        for word in line.split():
            sets.setdefault(stem(word), set()).add(number)
    degrees: dict[str, list[Degree]] = {}
    comparatives, superlatives = {}, {}
    forms: dict[str, list[str]] = {}
    for line in _section("irregular"):
        base, *others = line.split()
        forms[base] = [word for word in others if word.endswith(("er", "est", "rse", "rst", "best"))]
    for line in _section("degree"):
        adjective, sign, *measured = line.split()
        degrees.setdefault(adjective, []).append(Degree(more=sign == "+", of=frozenset(map(stem, measured))))
        root = adjective[:-1] + "i" if adjective.endswith("y") else adjective.removesuffix("e")
        doubled = root + root[-1]
        for start in (root, doubled):
            comparatives[start + "er"] = adjective
            superlatives[start + "est"] = adjective
        for form in forms.get(adjective, ()):
            (superlatives if form.endswith("st") else comparatives)[form] = adjective
    superlatives["latest"] = "latest"
    phrases = {}
    for line in _section("phrase"):
        spoken, _, meant = line.partition("=")
        phrases[tuple(map(stem, spoken.split()))] = tuple(map(stem, meant.split()))
    before = {}
    for line in _section("before"):
        word, *meant = line.split()
        before[word] = tuple(map(stem, meant))
    return Lexicon(
        sets={word: frozenset(numbers) for word, numbers in sets.items()},
        degrees={adjective: tuple(entries) for adjective, entries in degrees.items()},
        comparatives=comparatives,
        superlatives=superlatives,
        stop=frozenset(word for line in _section("stop") for word in line.split()),
        verbs=frozenset(word for line in _section("verb") for word in line.split()),
        openings=frozenset(word for line in _section("opening") for word in line.split()),
        phrases=phrases,
        before=before,
    )


def _trigrams(word: str) -> frozenset[str]:
    padded = f"^{word}$"
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))


@cache
def _sections() -> Mapping[str, tuple[str, ...]]:
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for raw in resources.files("agent_world.solver").joinpath("lexicon.txt").read_text("utf-8").splitlines():
        line = raw.partition("#")[0].strip()
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), [])
        elif line:
            current.append(line)
    return {name: tuple(lines) for name, lines in sections.items()}


def _section(name: str) -> tuple[str, ...]:
    return _sections()[name]


@cache
def _irregular() -> Mapping[str, str]:
    return {form: line.split()[0] for line in _section("irregular") for form in line.split()[1:]}
