"""What words have to do with each other: a place for each word, learned from the texts of all themes within reach.

Latent semantic analysis: words that occur in the same texts lie close together, so that two short texts about one thing
are near each other although they share no word.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

DIRECTIONS = 60
_RARE = 3  # texts; the company of a word that is seen less often says nothing
_COMMON = 0.15  # share of texts; a word in more of them has no company of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSpace:
    """The place of each word as `directions` 32-bit floats, longer for a word that is rarer."""

    directions: int
    places: Mapping[str, bytes]

    def __contains__(self, word: str) -> bool:
        return word in self.places

    def place(self, words: Iterable[str]) -> np.ndarray:
        """The direction in which these words lie, of length 1; zero when it knows none of them."""
        import numpy as np

        total = np.zeros(self.directions)
        for word, count in sorted(Counter(iter(words)).items()):  # of a mapping, its keys
            if word in self.places:
                total += (1 + math.log(count)) * np.frombuffer(self.places[word], np.float32)
        length = float(np.linalg.norm(total))
        return total / length if length else total


def space_of(texts: Sequence[Sequence[str]], publishers: Sequence[str] | None = None) -> WordSpace:
    """The space that these texts (their stems) make.

    All texts of one of the `publishers` together weigh as much as those of another, or one that describes every version
    of its services would fill most directions.
    """
    import numpy as np
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import svds

    frequency = Counter(word for words in texts for word in set(words))
    common = max(2 * _RARE, _COMMON * len(texts))
    vocabulary = sorted(word for word, count in frequency.items() if _RARE <= count <= common)
    if not vocabulary:
        return WordSpace(directions=1, places={})
    rarity = {word: math.log((1 + len(texts)) / (1 + frequency[word])) for word in vocabulary}
    column = {word: position for position, word in enumerate(vocabulary)}
    published = Counter(publishers or ())
    rows, columns, weights = [], [], []
    for number, words in enumerate(texts):
        known = {word: (1 + math.log(n)) * rarity[word] for word, n in sorted(Counter(words).items()) if word in rarity}
        length = math.hypot(*known.values()) or 1.0
        share = math.sqrt(published[publishers[number]]) if publishers else 1.0
        for word, weight in known.items():
            rows.append(number)
            columns.append(column[word])
            weights.append(weight / length / share)
    matrix = csr_matrix((weights, (rows, columns)), shape=(len(texts), len(vocabulary)))
    most = min(len(texts), len(vocabulary))
    if most > 2 * DIRECTIONS:
        found = svds(matrix, DIRECTIONS, v0=np.ones(most))[2]  # a fixed start: the same on every call
    else:
        found = np.linalg.svd(matrix.toarray(), full_matrices=False)[2][:DIRECTIONS]
    places = {
        word: (rarity[word] * found[:, position]).astype(np.float32).tobytes() for word, position in column.items()
    }
    return WordSpace(directions=len(found), places=places)
