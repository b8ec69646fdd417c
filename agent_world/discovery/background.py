"""How common words are among themes: the background against which a word of one theme is distinctive."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent_world.discovery.text import stems

COMMON_SHARE = 0.04
"""A word in more than this share of all themes says nothing about one of them."""

MAX_TERMS = 40
_TITLE_WEIGHT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """In how many of `themes` texts each stem occurs."""

    themes: int
    frequencies: Mapping[str, int]

    def terms(self, title: str, words: Iterable[str]) -> dict[str, float]:
        """The distinctive stems of a theme with their weights, heaviest first (tf-idf, the title counting more).

        `words` are the stems of its text.
        """
        counts = Counter(words)
        for word in stems(title):
            counts[word] += _TITLE_WEIGHT
        weights = {
            word: (1 + math.log(count)) * math.log(self.themes / (1 + self.frequencies.get(word, 0)))
            for word, count in counts.items()
            if self.frequencies.get(word, 0) <= COMMON_SHARE * self.themes
        }
        heaviest = sorted(weights, key=lambda word: (-weights[word], word))[:MAX_TERMS]
        return {word: weights[word] for word in heaviest}


def background_of(texts: Sequence[Sequence[str]]) -> Background:
    """The background that these theme texts (their stems) make."""
    frequencies = Counter(word for words in texts for word in set(words))
    return Background(themes=len(texts), frequencies=dict(frequencies))
