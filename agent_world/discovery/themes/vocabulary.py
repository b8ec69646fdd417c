"""The entity words and the action words of a theme, from its tool names and its sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from agent_world.discovery.text import STOP_WORDS, split_case
from agent_world.discovery.words import singular

_CRUD = frozenset(
    "create get list update delete describe put read write add remove set fetch find search insert patch query "
    "modify edit batch retrieve lookup show view save load check is has count new".split()
)
_WISH = re.compile(
    r"\b(?:wants? to|needs? to|can|must|may|able to|should|let me|lets \w+|to)\s+(?:then |also )?([a-z]{3,14})\b",
    re.I,
)
_WORD = re.compile(r"[a-z]{3,}")
_MAX = 24


def of_tools(tools: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Nouns and non-CRUD verbs of tool names such as `ListBuckets` or `search_nodes`, most frequent first."""
    nouns: Counter[str] = Counter()
    verbs: Counter[str] = Counter()
    for tool in tools:
        words = split_case(re.sub(r"[.\-/]", " ", tool["name"])).lower().split()
        if len(words) > 1 or (words and words[0] in _CRUD):
            if words[0] not in _CRUD and words[0].isalpha():
                verbs[words[0]] += 1
            words = words[1:]
        nouns.update(
            singular(word)
            for word in words
            if word.isalpha() and len(word) > 2 and word not in STOP_WORDS and word not in _CRUD
        )
    return _top(nouns), _top(verbs)


def of_prose(text: str, emphasis: str = "") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Nouns (frequent content words, those of `emphasis` counting more) and the verbs of what people want to do."""
    verbs = Counter(match[1].lower() for match in _WISH.finditer(text))
    verbs = Counter({verb: count for verb, count in verbs.items() if verb not in _CRUD and verb not in STOP_WORDS})
    words = [singular(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]
    nouns = Counter(words)
    for word in _WORD.findall(emphasis.lower()):
        if singular(word) in nouns:
            nouns[singular(word)] += 3
    frequent = Counter({word: count for word, count in nouns.items() if count > 1 and word not in verbs})
    return _top(frequent), _top(verbs)


def _top(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda word: (-counts[word], word))[:_MAX])
