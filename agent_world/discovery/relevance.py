"""Is this data about this theme? Distinctive words that both share, weighed by how rare they are on either side.

An anchor is a distinctive word of the theme that names a table, a column or the package, or a rare word that stands in
the cells. Coverage is the share of the theme's weight that the document carries; the answer is how much of what the
tables are called the theme talks about. Figures for the rule: docs/mining.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent_world.discovery.background import Background
from agent_world.discovery.model import CorpusDocument

_COMMON_DOCUMENTS = 0.20
_RARE_DOCUMENTS = 0.02
_NAME_WEIGHT = 1.5
_CELL_WEIGHT = 0.5
_PRIOR = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a document is, or is not, about a theme. `score` orders candidates and is compared with a threshold.

    Of the anchors, `named` stand in names of tables or files and `strong` in any name, column or summary.
    """

    document: CorpusDocument
    score: float
    anchors: tuple[str, ...]
    named: int
    strong: int
    coverage: float
    answer: float

    def facts(self) -> dict[str, object]:
        """The evidence as plain JSON."""
        return {
            "package": self.document.package,
            "tables": list(self.document.table_names[:12]),
            "score": round(self.score, 4),
            "anchors": list(self.anchors),
            "named": self.named,
            "strong": self.strong,
            "coverage": round(self.coverage, 4),
            "answer": round(self.answer, 4),
        }


class Relevance:
    """Judges documents against themes; document frequencies are counted once."""

    def __init__(self, documents: Sequence[CorpusDocument], background: Background) -> None:
        self._background = background
        self._words = {
            document.document_id: frozenset().union(*document.fields.values())
            for document in documents
            if document.kind == "tables"
        }
        self._frequency = Counter(word for words in self._words.values() for word in words)

    def judge(
        self, terms: Mapping[str, float], words: Collection[str], documents: Iterable[CorpusDocument]
    ) -> list[Evidence]:
        """The documents with at least two anchors for a theme, best first.

        `terms` are the theme's distinctive stems with weights (`Background.terms`), `words` all its stems.
        """
        spoken = frozenset(words)
        judged = [self._judge(terms, spoken, document, self._words[document.document_id]) for document in documents]
        return sorted(
            (evidence for evidence in judged if evidence and len(evidence.anchors) >= 2),
            key=lambda evidence: (-evidence.score, evidence.document.document_id),
        )

    def _judge(
        self, terms: Mapping[str, float], spoken: frozenset[str], document: CorpusDocument, words: frozenset[str]
    ) -> Evidence | None:
        common = _COMMON_DOCUMENTS * len(self._words)
        shared = [word for word in terms if word in words and self._frequency[word] <= common]
        if not shared:
            return None
        names = document.fields["names"]
        strong = names | document.fields["columns"] | document.fields["summary"]
        rare = _RARE_DOCUMENTS * len(self._words)
        anchors = {
            word: _NAME_WEIGHT if word in names else 1.0 if word in strong else _CELL_WEIGHT
            for word in shared
            if word in strong or (word in document.fields["cells"] and self._frequency[word] <= rare)
        }
        total = sum(terms.values()) + _PRIOR  # a theme of few words must not win by one of them
        anchored = sum(terms[word] * self._rarity(word) * weight for word, weight in anchors.items()) / total
        coverage = sum(terms[word] * self._rarity(word) for word in shared) / total
        answer = self._answer(names, spoken)
        score = anchored * math.log2(1 + len(anchors)) + 0.5 * coverage * math.log2(1 + len(shared))
        return Evidence(
            document=document,
            score=score * math.sqrt(0.05 + answer),
            anchors=tuple(anchors),
            named=sum(word in names for word in anchors),
            strong=sum(word in strong for word in anchors),
            coverage=coverage,
            answer=answer,
        )

    def _answer(self, names: frozenset[str], spoken: frozenset[str]) -> float:
        """The weighted share of the document's name words that the theme uses."""
        weights = {
            word: self._rarity(word)
            * math.log((1 + self._background.themes) / (1 + self._background.frequencies.get(word, 0)))
            for word in sorted(names)
        }
        total = sum(weights.values())
        return sum(weight for word, weight in weights.items() if word in spoken) / total if total else 0.0

    def _rarity(self, word: str) -> float:
        documents = len(self._words)
        return math.log((documents + 1) / (1 + self._frequency[word])) / math.log(documents + 1)
