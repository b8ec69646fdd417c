"""Names for groups of topics, made of the words that tell them from the others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from agent_world.discovery.text import stem, words_of
from agent_world.discovery.topics import Topic
from agent_world.discovery.word_space import WordSpace
from agent_world.discovery.words import singular

_NOUNS = 12


def labels_of(groups: Sequence[Sequence[Topic]], topics: Sequence[Topic], space: WordSpace) -> list[str]:
    """One name for each group: two words that most of its topics use, few others do, and that lie near them all.

    A word that the space does not know, such as the brand of a single topic, names a group only where nothing else can.
    """
    said = {topic.key: _said(topic) for topic in topics}
    everywhere = Counter(word for words in said.values() for word in words)
    labels: list[str] = []
    for group in groups:
        first, *others = _telling(group, said, everywhere, space) or ["other"]
        wanted = [*(f"{first} and {other}" for other in others), first]
        labels.append(next((name for name in wanted if name not in labels), f"{first} {len(labels) + 1}"))
    return labels


def _telling(
    group: Sequence[Topic], said: dict[str, dict[str, str]], everywhere: Counter[str], space: WordSpace
) -> list[str]:
    """The words of a group as people spell them, the most telling first."""
    import numpy as np

    inside = Counter(word for topic in group for word in said[topic.key])
    middle = np.mean([space.place(said[topic.key]) for topic in group], axis=0)

    def score(word: str) -> tuple[bool, float, str]:
        rarity = math.log((1 + len(said)) / everywhere[word])
        nearness = max(0.0, float(space.place([word]) @ middle))
        return (word not in space, -round(inside[word] / len(group) * rarity * nearness, 6), word)

    spelled: dict[str, Counter[str]] = {}
    for topic in group:
        for word, spelling in said[topic.key].items():
            spelled.setdefault(word, Counter())[spelling] += 1
    return [
        min(spelled[word], key=lambda spelling: (-spelled[word][spelling], spelling))
        for word in sorted(inside, key=score)
    ]


def _said(topic: Topic) -> dict[str, str]:
    """The stems of the title and of the foremost entities, each with a spelling that people read."""
    words = [*map(singular, words_of(topic.title)), *topic.nouns[:_NOUNS]]
    return {stem(word): word for word in reversed(words) if len(word) > 2}
